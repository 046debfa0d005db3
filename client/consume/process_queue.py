"""ProcessQueue: the client's cache of one queue, and the measure of its progress.

Specification: docs/spec/client.md C.6.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from rewindmq.protocol.message import MessageExt

PULL_EXPIRED_SECONDS: Final = 120.0
# Pause of a queue that is not pulled because its cache is full.
FLOW_CONTROL_DELAY: Final = 0.05


@dataclass(slots=True)
class QueueCounts:
    """What happened to one queue since its statistics were gathered last.

    Attributes:
        pulls, pull_seconds: pulls that brought messages, and how long they took, in protocol seconds.
        pulled: messages that were new to the cache.
        consumed: messages that left it and had not failed; found out by ``take_counts``.
        failed, cleared: messages that the listener refused; that were thrown away.
        calls, call_seconds: batches that were timed in the listener, one in many.
    """

    pulls: int = 0
    pull_seconds: float = 0.0
    pulled: int = 0
    calls: int = 0
    call_seconds: float = 0.0
    consumed: int = 0
    failed: int = 0
    cleared: int = 0

    def pull_took(self, seconds: float) -> None:
        """A pull has brought messages."""
        self.pulls += 1
        self.pull_seconds += seconds

    def call_took(self, seconds: float) -> None:
        """A batch that was timed has gone through the listener."""
        self.calls += 1
        self.call_seconds += seconds

    def have_failed(self, messages: int, done: int) -> None:
        """The listener refused messages; ``done`` of them are removed all the same."""
        self.failed += messages
        self.consumed -= done


class ProcessQueue:
    """Messages pulled and not yet consumed, by offset.

    A queue given up is never revived: ``dropped`` stays set, and a later assignment gets a new object. That
    is what keeps the results of slow listeners out (guards G1 to G3 of docs/spec/races.md E.2).

    Attributes:
        dropped: this queue is no longer ours; results of running listeners are discarded.
        last_pull: protocol seconds of the last attempt to pull.
        chain: the number of its chain of pulls, which no other ProcessQueue of the process has.
        epoch: how often the queue had been reset in fenced mode when it was taken over; None in clients
            that know no epochs.
        cached_bytes: stored size of the cached bodies (compressed ones count as they came).
        counts: for statistics.
        last_consume: protocol seconds of the last time statistics found progress, at most 5 s too late.
    """

    __slots__ = (
        "_left",
        "_messages",
        "_offsets",
        "cached_bytes",
        "chain",
        "counts",
        "dropped",
        "epoch",
        "highest_offset",
        "last_consume",
        "last_pull",
    )

    def __init__(self, now: float, chain: int = 0, epoch: int | None = None) -> None:
        self._messages: dict[int, MessageExt] = {}
        # Offsets in ascending order; its head may name messages already removed.
        self._offsets: deque[int] = deque()
        self.cached_bytes = 0
        self.highest_offset = 0
        self.dropped = False
        self.last_pull = self.last_consume = now
        self.counts = QueueCounts()
        # Cached when the counts were last taken.
        self._left = 0
        self.chain = chain
        self.epoch = epoch

    @property
    def cached_count(self) -> int:
        return len(self._messages)

    @property
    def span(self) -> int:
        """Distance between the first and the last cached offset; 0 when at most one is cached."""
        if not self._messages:
            return 0
        return self._offsets[-1] - self._offsets[0]

    @property
    def cached_offsets(self) -> tuple[int, int]:
        """The first and the last offset cached; zeros when there is none."""
        return (self._offsets[0], self._offsets[-1]) if self._messages else (0, 0)

    @property
    def first_message(self) -> MessageExt | None:
        """The message that progress waits for."""
        return self._messages[self._offsets[0]] if self._messages else None

    def contains(self, message: MessageExt) -> bool:
        """Whether a message of its offset is still cached."""
        return message.queue_offset in self._messages

    def take_counts(self) -> QueueCounts:
        """What happened since this was last called."""
        counts, self.counts = self.counts, QueueCounts()
        # Nothing is counted where messages are removed, one by one.
        left = self.cached_count
        counts.consumed = max(0, counts.consumed + self._left + counts.pulled - counts.cleared - left)
        self._left = left
        return counts

    def is_pull_expired(self, now: float) -> bool:
        """No attempt to pull for 120 s: the chain of pulls must have broken."""
        return now - self.last_pull > PULL_EXPIRED_SECONDS

    def put_messages(self, messages: Sequence[MessageExt]) -> None:
        """Cache what a pull brought; an offset already cached is replaced and counted once."""
        if not messages:
            return
        cached = self._messages
        offsets = [message.queue_offset for message in messages]
        if self._offsets and offsets[0] <= self._offsets[-1]:
            self._merge(offsets, messages)
            return
        self.counts.pulled += len(messages)
        cached.update(zip(offsets, messages, strict=True))
        self._offsets.extend(offsets)
        self.highest_offset = offsets[-1]
        self.cached_bytes += sum([len(message.stored_body) for message in messages])

    def _merge(self, offsets: Sequence[int], messages: Sequence[MessageExt]) -> None:
        for offset, message in zip(offsets, messages, strict=True):
            if offset not in self._messages:
                self.counts.pulled += 1
                self.cached_bytes += len(message.stored_body)
                self.highest_offset = offset
            self._messages[offset] = message
        self._offsets = deque(sorted(self._messages))

    def remove_messages(self, messages: Iterable[MessageExt]) -> int:
        """Forget consumed messages.

        Returns:
            The offset consumption may resume at: the smallest still cached, one past the highest ever put
            when none is left, or -1 when nothing was cached to begin with (as after ``clear``).
        """
        cached = self._messages
        if not cached:
            return -1
        for message in messages:
            removed = cached.pop(message.queue_offset, None)
            if removed is not None:
                self.cached_bytes -= len(removed.stored_body)
        if not cached:
            self._offsets.clear()
            return self.highest_offset + 1
        offsets = self._offsets
        while offsets[0] not in cached:
            offsets.popleft()
        while offsets[-1] not in cached:
            offsets.pop()
        return offsets[0]

    def clear(self) -> None:
        """Empty the cache and forget the highest offset; ``dropped`` is left as it is."""
        self.counts.cleared += self.cached_count
        self._messages.clear()
        self._offsets.clear()
        self.cached_bytes = 0
        self.highest_offset = 0
