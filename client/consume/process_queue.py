"""ProcessQueue: the client's cache of one queue; the basis of the queue's progress.

Specification: docs/spec/client.md C.6.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from rewindmq.protocol.message import MessageExt

PULL_EXPIRED_SECONDS: Final = 120.0
# Seconds until the next try to pull a queue whose cache is full.
FLOW_CONTROL_DELAY: Final = 0.05


@dataclass(slots=True)
class QueueCounts:
    """Counts of one queue since the statistics last gathered them.

    Attributes:
        pulls, pull_seconds: pulls that returned messages, and their duration in protocol seconds.
        pulled: messages added to the cache.
        consumed: messages removed after success; computed by ``take_counts``.
        failed, cleared: messages that the listener failed; messages that ``clear`` removed.
        calls, call_seconds: listener calls that were timed (a sample), and their duration.
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
        """Count a pull that returned messages."""
        self.pulls += 1
        self.pull_seconds += seconds

    def call_took(self, seconds: float) -> None:
        """Count a listener call that was timed."""
        self.calls += 1
        self.call_seconds += seconds

    def have_failed(self, messages: int, done: int) -> None:
        """Count failed messages, ``done`` of which are removed from the cache."""
        self.failed += messages
        self.consumed -= done


class ProcessQueue:
    """Messages of one queue that are pulled and not yet consumed, by offset.

    A dropped object is never reused: ``dropped`` stays set, and a later assignment creates a new object.
    This discards the results of slow listeners (guards G1 to G3 of docs/spec/races.md E.2).

    Attributes:
        dropped: the consumer no longer owns the queue; results of running listeners are discarded.
        last_pull: protocol seconds of the last attempt to pull.
        chain: number of this object's sequence of pulls, unique in the process.
        epoch: number of fenced resets of the queue when it was assigned; None if the client does not use
            epochs.
        cached_bytes: size of the cached bodies as received, that is, before decompression.
        counts: counts for the statistics.
        last_consume: protocol seconds at which the statistics last found progress, at most 5 s late.
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
        # Offsets in ascending order. The first and the last are cached; messages between them may be removed.
        self._offsets: deque[int] = deque()
        self.cached_bytes = 0
        self.highest_offset = 0
        self.dropped = False
        self.last_pull = self.last_consume = now
        self.counts = QueueCounts()
        # Number of cached messages when the counts were last taken.
        self._left = 0
        self.chain = chain
        self.epoch = epoch

    @property
    def cached_count(self) -> int:
        return len(self._messages)

    @property
    def span(self) -> int:
        """Distance between the first and the last cached offset; 0 for less than two messages."""
        if not self._messages:
            return 0
        return self._offsets[-1] - self._offsets[0]

    @property
    def cached_offsets(self) -> tuple[int, int]:
        """The first and the last cached offset; zeros if the cache is empty."""
        return (self._offsets[0], self._offsets[-1]) if self._messages else (0, 0)

    @property
    def first_message(self) -> MessageExt | None:
        """The cached message with the lowest offset, which determines the progress."""
        return self._messages[self._offsets[0]] if self._messages else None

    def contains(self, message: MessageExt) -> bool:
        """True if a message with the same offset is cached."""
        return message.queue_offset in self._messages

    def take_counts(self) -> QueueCounts:
        """Return the counts since the last call, and reset them."""
        counts, self.counts = self.counts, QueueCounts()
        # Computed here, so that the removal of each message stays cheap.
        left = self.cached_count
        counts.consumed = max(0, counts.consumed + self._left + counts.pulled - counts.cleared - left)
        self._left = left
        return counts

    def is_pull_expired(self, now: float) -> bool:
        """True if there was no attempt to pull for 120 s: the pull loop must have stopped."""
        return now - self.last_pull > PULL_EXPIRED_SECONDS

    def put_messages(self, messages: Sequence[MessageExt]) -> None:
        """Cache pulled messages; a message replaces a cached one with the same offset."""
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
        """Remove consumed messages.

        Returns:
            The offset to commit: the lowest cached one, or one past the highest ever cached if the cache
            is now empty. -1 if the cache was empty before the call, as after ``clear``.
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
        """Empty the cache and reset the highest offset; ``dropped`` stays unchanged."""
        self.counts.cleared += self.cached_count
        self._messages.clear()
        self._offsets.clear()
        self.cached_bytes = 0
        self.highest_offset = 0
