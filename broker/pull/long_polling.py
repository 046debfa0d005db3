"""Suspended pulls, which wait for messages (docs/spec/broker.md B.6; 4.9.4 ``PullRequestHoldService``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from rewindmq.broker.filter.property_filter import PropertyFilter
from rewindmq.broker.limits import (
    MAX_SUSPEND_SECONDS,
    MAX_SUSPENDED_BYTES,
    MAX_SUSPENDED_BYTES_PER_CONNECTION,
)
from rewindmq.broker.shares import Shares
from rewindmq.broker.store.messages.replica import Arrival
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.pull import PullMessageRequestHeader
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.runtime import Cancellable, Clock, Timers

CHECK_SECONDS: Final = 5.0
# Pulls answered in one turn of the event loop: about 5 ms.
_SLICE: Final = 256
# About what a suspended pull takes, and a character of its filter: a tag has a hash, an expression a tree.
SUSPENDED_BYTES: Final = 1_024
SUSPENDED_BYTES_PER_CHARACTER: Final = 32

K = TypeVar("K")

# The messages for which a pull waits: one of these tag hashes, properties that pass, or all.
MessageFilter = frozenset[int] | PropertyFilter | None
# Called with the topic, the queue id, and of each new message the tagsCode and the properties text.
Watcher = Callable[[str, int, tuple[int, ...], Sequence[bytes]], None]


@dataclass(frozen=True, slots=True, eq=False)
class SuspendedPull:
    """A suspended pull, which runs again when a message arrives or its time is over.

    Attributes:
        offset: the pull waits until the queue's maximum is above this offset.
        suspended_at, suspend_seconds: protocol seconds; it waits for ``MAX_SUSPEND_SECONDS`` at most.
        filter: the messages for which it waits.
        run: runs it again, without suspending it a second time.
    """

    connection: Connection
    request: RemotingCommand
    header: PullMessageRequestHeader
    offset: int
    suspended_at: float
    suspend_seconds: float
    filter: MessageFilter
    run: Callable[[SuspendedPull], None]

    @property
    def queue(self) -> tuple[str, int]:
        """The topic and the queue id."""
        return self.header.topic, self.header.queue_id

    @property
    def memory(self) -> int:
        """About the memory that the pull takes, in bytes."""
        subscription = self.header.subscription
        if subscription is None:
            return SUSPENDED_BYTES
        return SUSPENDED_BYTES + SUSPENDED_BYTES_PER_CHARACTER * len(subscription)


class LongPolling:
    """The suspended pulls of each (topic, queue).

    Args:
        max_offset: returns the maximum of a (topic, queue).

    Attributes:
        shares: the bytes of the pulls of each connection.
    """

    def __init__(self, clock: Clock, timers: Timers, max_offset: Callable[[str, int], int]) -> None:
        self._clock = clock
        self._timers = timers
        self._max_offset = max_offset
        # The pulls of a queue, and those of a connection, in order of arrival.
        self._suspended: dict[tuple[str, int], dict[SuspendedPull, None]] = {}
        self._of: dict[Connection, dict[SuspendedPull, None]] = {}
        self.shares = Shares(
            "bytes of suspended pulls", MAX_SUSPENDED_BYTES_PER_CONNECTION, MAX_SUSPENDED_BYTES
        )
        self._woken: list[SuspendedPull] = []
        self._timer: Cancellable | None = None
        # Who else waits for messages of a queue; each such queue is in ``_suspended``, perhaps without pulls.
        self._watchers: dict[tuple[str, int], Watcher] = {}

    def start(self) -> None:
        """Begin the 5 s loop."""
        self._timer = self._timers.call_later(CHECK_SECONDS, self._tick)

    def close(self) -> None:
        """Stop the loop and drop all pulls; the connections are about to close."""
        if self._timer is not None:
            self._timer.cancel()
        for connection in list(self._of):
            self.on_close(connection)
        self._woken.clear()

    @property
    def suspended_count(self) -> int:
        """The number of suspended pulls."""
        return sum(map(len, self._suspended.values()))

    def suspend(self, pull: SuspendedPull) -> None:
        """Keep a pull until a message arrives or its time is over.

        Raises:
            RequestError: SYSTEM_BUSY (2), the pulls of the connection, or all pulls, take too much memory.
        """
        memory = pull.memory
        self.shares.check(pull.connection, memory, ResponseCode.SYSTEM_BUSY)
        self.shares.add(pull.connection, memory)
        self._suspended.setdefault(pull.queue, {})[pull] = None
        self._of.setdefault(pull.connection, {})[pull] = None

    def watch(self, topic: str, queue_id: int, watcher: Watcher) -> None:
        """Call ``watcher`` for every message that is stored in the queue, until ``unwatch``."""
        self._watchers[topic, queue_id] = watcher
        self._suspended.setdefault((topic, queue_id), {})

    def unwatch(self, topic: str, queue_id: int) -> None:
        """Stop calling the queue's watcher."""
        del self._watchers[topic, queue_id]
        if not self._suspended[topic, queue_id]:
            del self._suspended[topic, queue_id]

    @property
    def awaited(self) -> Mapping[tuple[str, int], object]:
        """The topics and queue ids whose messages must be announced, a view of what they are at any time."""
        return self._suspended

    def is_awaited(self, topic: str, queue_id: int) -> bool:
        """Return True if a pull or a watcher waits on this queue; only then ``on_arrival`` has an effect."""
        return (topic, queue_id) in self._suspended

    def on_arrival(
        self,
        topic: str,
        queue_id: int,
        max_offset: int,
        tag_codes: tuple[int, ...],
        properties: Sequence[bytes],
    ) -> None:
        """Wake the pulls that wait for a message just stored; called for every message, so it must be quick.

        The pulls run when all messages of this event-loop turn are stored, so that one response
        carries as many of them as possible.

        Args:
            max_offset: the queue's new maximum.
            tag_codes: the tagsCode of the new message, or of each message of a batch.
            properties: the properties texts of the same messages.
        """
        pulls = self._suspended.get((topic, queue_id)) if self._suspended else None
        if pulls is None:
            return
        if self._watchers and (watcher := self._watchers.get((topic, queue_id))) is not None:
            watcher(topic, queue_id, tag_codes, properties)
            if not pulls:
                return
        self._answer_soon(self._take_due(pulls, max_offset, tag_codes, properties))

    def on_arrivals(self, arrivals: Iterable[Arrival]) -> None:
        """Wake the pulls that wait for messages which a slave has just copied."""
        for topic, queue_id, max_offset, tags_code, properties in arrivals:
            self.on_arrival(topic, queue_id, max_offset, (tags_code,), (properties,))

    def answer_outdated(
        self, group: str, topic: str, queue_id: int, oldest: int = 0
    ) -> Iterator[Connection | None]:
        """Answer the group's pulls of a queue that was reset.

        Args:
            oldest: the version (``MQVersion``) from which a client's pulls are answered.

        Yields:
            After each pull of the queue: its connection, or None for a pull that still waits.
        """
        queue = topic, queue_id
        for pull in list(self._suspended.get(queue, ())):
            # Between two steps a message may have woken it, or its connection may have closed.
            is_outdated = pull.header.consumer_group == group and pull.request.version >= oldest
            if is_outdated and pull in self._suspended.get(queue, ()):
                self._remove((pull,))
                pull.run(pull)
                yield pull.connection
            else:
                yield None

    def on_close(self, connection: Connection) -> None:
        """Drop the pulls of a closed connection."""
        self._remove(list(self._of.get(connection, ())))

    def _tick(self) -> None:
        self._timer = self._timers.call_later(CHECK_SECONDS, self._tick)
        for key, pulls in list(self._suspended.items()):
            if not pulls:
                continue
            # The loop ignores filters: if a message arrived without waking the pull, the pull must read
            # again.
            self._answer_soon(self._take_due(pulls, self._max_offset(*key), None))

    def _answer_soon(self, pulls: list[SuspendedPull]) -> None:
        if pulls and not self._woken:
            self._timers.call_later(0.0, self._answer_woken)
        self._woken += pulls

    def _answer_woken(self) -> None:
        woken, self._woken = self._woken[:_SLICE], self._woken[_SLICE:]
        if self._woken:
            self._timers.call_later(0.0, self._answer_woken)
        for pull in woken:
            pull.run(pull)

    def _take_due(
        self,
        pulls: Iterable[SuspendedPull],
        max_offset: int,
        tag_codes: tuple[int, ...] | None,
        properties: Sequence[bytes] = (),
    ) -> list[SuspendedPull]:
        """Remove and return the pulls that are due."""
        now = self._clock.monotonic()
        due = [pull for pull in pulls if _is_due(pull, max_offset, tag_codes, properties, now)]
        self._remove(due)
        return due

    def _remove(self, pulls: Iterable[SuspendedPull]) -> None:
        for pull in pulls:
            self._remove_from(self._suspended, pull.queue, pull)
            if self._watchers and pull.queue in self._watchers:
                self._suspended.setdefault(pull.queue, {})
            self._remove_from(self._of, pull.connection, pull)
            self.shares.remove(pull.connection, pull.memory)

    @staticmethod
    def _remove_from(table: dict[K, dict[SuspendedPull, None]], key: K, pull: SuspendedPull) -> None:
        pulls = table[key]
        del pulls[pull]
        if not pulls:
            del table[key]


def _is_due(
    pull: SuspendedPull,
    max_offset: int,
    tag_codes: tuple[int, ...] | None,
    properties: Sequence[bytes],
    now: float,
) -> bool:
    if max_offset > pull.offset and (
        tag_codes is None or pull.filter is None or is_wanted(pull.filter, tag_codes, properties)
    ):
        return True
    return now - pull.suspended_at >= min(pull.suspend_seconds, MAX_SUSPEND_SECONDS)


def is_wanted(
    wanted: frozenset[int] | PropertyFilter, tag_codes: tuple[int, ...], properties: Sequence[bytes]
) -> bool:
    """Return True if a filter accepts any of the messages."""
    if isinstance(wanted, frozenset):
        return not wanted.isdisjoint(tag_codes)
    return any(map(wanted.accepts, properties))
