"""ResetWatch: the watched reset of a group in a topic, from sample to sample."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.watch.evidence.group import GroupWatch
from rewindmq.watch.evidence.moment import Case, group_offset
from rewindmq.watch.evidence.sample import QueueSample, Sample
from rewindmq.watch.rules.fetched import FetchCount
from rewindmq.watch.rules.minute import CountSpan
from rewindmq.watch.verdict.queue_watch import QueueWatch
from rewindmq.watch.verdict.states import State

# Queues between two turns of the event loop.
_QUEUES_IN_SLICE: Final = 32


@dataclass(frozen=True, slots=True)
class Change:
    """A queue's new state, ``seconds`` after the reset."""

    seconds: float
    watch: QueueWatch
    state: State


@dataclass(frozen=True, slots=True)
class Waiting:
    """Nothing has changed for a while.

    Attributes:
        seconds: after the reset.
        left: seconds until the open queues are given up.
        open: the queues without a verdict.
        count: all queues.
    """

    seconds: float
    left: float
    open: tuple[QueueWatch, ...]
    count: int


class ResetWatch:
    """The watched reset of a group in a topic.

    Args:
        before: the sample right before the reset.
        targets: target offset of each queue that the brokers have reset.
        began: monotonic protocol seconds at which the reset was sent.
        olds: of a repair: the old offset at the first reset, where it may be above the stored offset now.
    """

    def __init__(
        self,
        before: Sample,
        targets: Mapping[MessageQueue, int],
        began: float,
        olds: Mapping[MessageQueue, int] = MappingProxyType({}),
    ) -> None:
        self._began = began
        self._count = FetchCount(before, targets)
        self._group = GroupWatch(before.clients)
        self.queues = [
            QueueWatch(case_of(before, queue, target, olds.get(queue, 0)))
            for queue, target in sorted(targets.items())
        ]

    @property
    def is_over(self) -> bool:
        return all(watch.is_over for watch in self.queues)

    def needs_counts(self, at: float) -> AbstractSet[str]:
        """Return the brokers whose count of fetched messages may show something in a sample of that time."""
        return self._count.needs(at, at - self._began)

    def close_counts(self, at: float, until: float) -> Mapping[str, CountSpan]:
        """Return the brokers that may count between two times, and when: the watch asks them closely then."""
        spans = self._count.expected_within
        return {
            broker: span for broker, span in spans.items() if span.earliest <= until and span.latest >= at
        }

    def waiting(self, now: float, left: float) -> Waiting:
        """Return what the watch waits for."""
        undecided = tuple(watch for watch in self.queues if not watch.is_over)
        return Waiting(now - self._began, left, undecided, len(self.queues))

    def add(self, sample: Sample) -> list[Change]:
        """Take in a sample; return the changes of states."""
        slices = self.add_in_slices(sample)
        while True:
            try:
                next(slices)
            except StopIteration as end:
                return list(end.value)

    def add_in_slices(self, sample: Sample) -> Generator[None, None, list[Change]]:
        """Take in a sample as ``add`` does, in slices. Only a finished call leaves the watch whole."""
        seconds = sample.at - self._began
        left_out = self._count.add(seconds, sample)
        group = self._group.add(seconds, sample)
        changes = []
        for number, watch in enumerate(self.queues, 1):
            counted = self._count.of(watch.queue, left_out)
            if watch.add(seconds, sample.queues[watch.queue], group, counted):
                changes.append(Change(seconds, watch, watch.state))
            if number % _QUEUES_IN_SLICE == 0:
                yield
        return changes

    def end(self, now: float) -> list[Change]:
        """Give up the queues that are still open; return their changes."""
        seconds = now - self._began
        return [Change(seconds, watch, watch.state) for watch in self.queues if watch.end(seconds)]


def case_of(before: Sample, queue: MessageQueue, target: int, old: int = 0) -> Case:
    """Return the case of one queue; ``old`` of a repair, see ``ResetWatch``."""
    seen = before.queues.get(queue, QueueSample(None))
    is_known = seen.stored is not None and before.is_complete
    return Case(queue, max(group_offset(seen, target), old), target, seen, before.clients, is_known)
