"""Watches a reset: takes samples until every queue is proven, lost or unknown."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from rewindmq.client.admin.watched_reset.brokers import Brokers
from rewindmq.client.admin.watched_reset.fetched import FetchCount
from rewindmq.client.admin.watched_reset.group_watch import GroupWatch
from rewindmq.client.admin.watched_reset.queue_watch import QueueWatch, group_offset
from rewindmq.client.admin.watched_reset.sample import QueueSample, Sample, take_sample
from rewindmq.client.admin.watched_reset.states import State
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.remoting.slices.run import run_at_once, run_slices

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient

# Seconds.
INTERVAL: Final = 0.5
PATIENCE: Final = 120.0
# Queues between two turns of the event loop.
_QUEUES_IN_SLICE: Final = 32


# Called with each sample.
Observer = Callable[[Sample], None]


def ignore_sample(_sample: Sample) -> None:
    """Observe nothing."""


@dataclass(frozen=True, slots=True)
class Change:
    """A queue's new state, ``seconds`` after the reset."""

    seconds: float
    watch: QueueWatch
    state: State


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
        group = GroupWatch(before.clients)
        self.queues = [
            QueueWatch(
                queue,
                max(group_offset(_seen(before, queue), target), olds.get(queue, 0)),
                target,
                _seen(before, queue),
                group,
            )
            for queue, target in sorted(targets.items())
        ]

    @property
    def is_over(self) -> bool:
        return all(watch.is_over for watch in self.queues)

    def add(self, sample: Sample) -> list[Change]:
        """Take in a sample; return the changes of states."""
        return run_at_once(self.add_in_slices(sample))

    def add_in_slices(self, sample: Sample) -> Generator[None, None, list[Change]]:
        """Take in a sample as ``add`` does, in slices. Only a finished call leaves the watch whole."""
        seconds = sample.at - self._began
        counted = self._count.add(seconds, sample)
        changes = []
        for number, watch in enumerate(self.queues, 1):
            if watch.add(seconds, sample, is_counted=watch.queue.broker_name in counted):
                changes.append(Change(seconds, watch, watch.state))
            if number % _QUEUES_IN_SLICE == 0:
                yield
        return changes

    def end(self, now: float) -> list[Change]:
        """Give up the queues that are still open; return their changes."""
        seconds = now - self._began
        return [Change(seconds, watch, watch.state) for watch in self.queues if watch.end(seconds)]


async def follow(
    admin: AdminClient,
    topic: str,
    group: str,
    watch: ResetWatch,
    *,
    interval: float = INTERVAL,
    patience: float = PATIENCE,
    observe: Observer = ignore_sample,
    brokers: Brokers | None = None,
) -> AsyncGenerator[Change]:
    """Take a sample every ``interval`` seconds until each queue's state is final; yield each change.

    Args:
        patience: seconds after which open queues become ``UNKNOWN``.
        observe: called after each sample, before the changes that it shows.
        brokers: asks the brokers; None makes its own.
    """
    queues = [item.queue for item in watch.queues]
    clock = admin.runtime.clock
    brokers = brokers or Brokers(admin)
    until = clock.monotonic() + patience
    while True:
        sample = await take_sample(admin, topic, group, queues, brokers)
        changes = await run_slices(admin.runtime.timers, watch.add_in_slices(sample))
        observe(sample)
        for change in changes:
            yield change
        if watch.is_over or clock.monotonic() >= until:
            break
        await admin.runtime.timers.sleep(interval)
    for change in watch.end(clock.monotonic()):
        yield change


def _seen(before: Sample, queue: MessageQueue) -> QueueSample:
    return before.queues.get(queue, QueueSample(None))
