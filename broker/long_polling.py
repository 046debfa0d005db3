"""Pulls that found nothing and wait (docs/spec/broker.md B.6; RocketMQ 4.9.4 ``PullRequestHoldService``)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from rewindmq.broker.filter.property_filter import PropertyFilter
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.pull import PullMessageRequestHeader
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.runtime import Cancellable, Clock, Timers

CHECK_SECONDS: Final = 5.0

# What a pull wants: messages with one of these tag hashes, those whose properties pass, or all.
MessageFilter = frozenset[int] | PropertyFilter | None


@dataclass(frozen=True, slots=True, eq=False)
class HeldPull:
    """A pull to be run once more, on arrival or when its time is over.

    Attributes:
        offset: it waits until the queue's end moves past this one.
        held_at, hold_seconds: protocol seconds.
        filter: what it waits for.
    """

    connection: Connection
    request: RemotingCommand
    header: PullMessageRequestHeader
    offset: int
    held_at: float
    hold_seconds: float
    filter: MessageFilter


class LongPolling:
    """The held pulls of each (topic, queue).

    Args:
        max_offset: one past the last message of a (topic, queue).
    """

    def __init__(self, clock: Clock, timers: Timers, max_offset: Callable[[str, int], int]) -> None:
        self._clock = clock
        self._timers = timers
        self._max_offset = max_offset
        self._answer: Callable[[HeldPull], None] = _not_started
        self._held: dict[tuple[str, int], list[HeldPull]] = {}
        self._woken: list[HeldPull] = []
        self._timer: Cancellable | None = None

    def start(self, answer: Callable[[HeldPull], None]) -> None:
        """Begin the 5 s loop.

        Args:
            answer: runs a pull again, this time without holding it.
        """
        self._answer = answer
        self._timer = self._timers.call_later(CHECK_SECONDS, self._tick)

    def close(self) -> None:
        """Stop the loop and forget everything; the connections are about to go."""
        if self._timer is not None:
            self._timer.cancel()
        self._held.clear()
        self._woken.clear()

    @property
    def held_count(self) -> int:
        """Pulls waiting now."""
        return sum(map(len, self._held.values()))

    def hold(self, pull: HeldPull) -> None:
        """Keep a pull until there is a reason to answer it."""
        self._held.setdefault((pull.header.topic, pull.header.queue_id), []).append(pull)

    def is_awaited(self, topic: str, queue_id: int) -> bool:
        """Whether a pull waits for this queue: only then is there an arrival to tell."""
        return (topic, queue_id) in self._held

    def on_arrival(
        self,
        topic: str,
        queue_id: int,
        max_offset: int,
        tag_codes: tuple[int, ...],
        properties: Sequence[bytes],
    ) -> None:
        """Wake the pulls that wait for a message just stored; called for every one, so it has to be quick.

        The pulls run after the messages of this event-loop turn are all in the store, so that one answer
        carries as many of them as it may.

        Args:
            max_offset: one past the new message.
            tag_codes: of the new message, or of each message of a batch.
            properties: the properties text of the same.
        """
        pulls = self._held.get((topic, queue_id)) if self._held else None
        if pulls is None:
            return
        due = self._take_due((topic, queue_id), pulls, max_offset, tag_codes, properties)
        if due and not self._woken:
            self._timers.call_later(0.0, self._answer_woken)
        self._woken += due

    def on_reset(self, group: str, topic: str, queue_ids: Collection[int]) -> list[HeldPull]:
        """Answer the group's pulls of these queues now, and give them back: they are of an older epoch."""
        woken: list[HeldPull] = []
        for queue_id in queue_ids:
            pulls = self._held.get((topic, queue_id), [])
            of_group = [pull for pull in pulls if pull.header.consumer_group == group]
            if of_group:
                woken += of_group
                others = [pull for pull in pulls if pull.header.consumer_group != group]
                self._replace((topic, queue_id), others)
        for pull in woken:
            self._answer(pull)
        return woken

    def on_close(self, connection: Connection) -> None:
        """Forget the pulls of a connection that went away."""
        for key, pulls in list(self._held.items()):
            self._replace(key, [pull for pull in pulls if pull.connection is not connection])

    def _tick(self) -> None:
        self._timer = self._timers.call_later(CHECK_SECONDS, self._tick)
        for key in list(self._held):
            # Answering one pull may store a message (OFFSET_MOVED_EVENT) that wakes others.
            pulls = self._held.get(key, [])
            # The loop looks at no tag: whatever arrived unseen is a reason to look again.
            for pull in self._take_due(key, pulls, self._max_offset(*key), None):
                self._answer(pull)

    def _answer_woken(self) -> None:
        woken, self._woken = self._woken, []
        for pull in woken:
            self._answer(pull)

    def _take_due(
        self,
        key: tuple[str, int],
        pulls: list[HeldPull],
        max_offset: int,
        tag_codes: tuple[int, ...] | None,
        properties: Sequence[bytes] = (),
    ) -> list[HeldPull]:
        """Take the pulls that are to be answered out of those held."""
        now = self._clock.monotonic()
        due: list[HeldPull] = []
        waiting: list[HeldPull] = []
        for pull in pulls:
            (due if _is_due(pull, max_offset, tag_codes, properties, now) else waiting).append(pull)
        if due:
            self._replace(key, waiting)
        return due

    def _replace(self, key: tuple[str, int], pulls: list[HeldPull]) -> None:
        if pulls:
            self._held[key] = pulls
        else:
            del self._held[key]


def _is_due(
    pull: HeldPull,
    max_offset: int,
    tag_codes: tuple[int, ...] | None,
    properties: Sequence[bytes],
    now: float,
) -> bool:
    if max_offset > pull.offset and (
        tag_codes is None or pull.filter is None or _is_wanted(pull.filter, tag_codes, properties)
    ):
        return True
    return now - pull.held_at >= pull.hold_seconds


def _is_wanted(
    wanted: frozenset[int] | PropertyFilter, tag_codes: tuple[int, ...], properties: Sequence[bytes]
) -> bool:
    if isinstance(wanted, frozenset):
        return not wanted.isdisjoint(tag_codes)
    return any(map(wanted.accepts, properties))


def _not_started(pull: HeldPull) -> None:
    raise AssertionError(f"a pull of {pull.header.topic} is due before start()")
