"""Watches a reset: takes samples until every queue is proven, lost or unknown."""

from __future__ import annotations

import contextlib
import math
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING, Final

from rewindmq.client.admin.watched_reset.brokers import Brokers
from rewindmq.client.admin.watched_reset.take_sample import take_sample
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.remoting.slices.run import run_slices
from rewindmq.watch.evidence.sample import Sample
from rewindmq.watch.verdict.reset_watch import Change, ResetWatch, Waiting

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient

# Seconds.
INTERVAL: Final = 0.5
PATIENCE: Final = 120.0


# Called with each sample.
Observer = Callable[[Sample], None]


def ignore_sample(_sample: Sample) -> None:
    """Observe nothing."""


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
    remind_after: float = math.inf,
) -> AsyncGenerator[Change | Waiting]:
    """Take a sample every ``interval`` seconds until each queue's state is final; yield each change.

    Args:
        patience: seconds after which open queues become ``UNKNOWN``.
        observe: called after each sample, before the changes that it shows.
        brokers: asks the brokers; None makes its own.
        remind_after: seconds without a change after which it yields what it waits for.
    """
    queues = [item.queue for item in watch.queues]
    clock = admin.runtime.clock
    brokers = brokers or Brokers(admin)
    changed_at = clock.monotonic()
    until = changed_at + patience
    while True:
        began_at = clock.monotonic()
        needed = watch.needs_counts(began_at)
        sample = await take_sample(admin, topic, group, queues, brokers, needed)
        changes = await run_slices(admin.runtime.timers, watch.add_in_slices(sample))
        observe(sample)
        for change in changes:
            yield change
        now = clock.monotonic()
        if watch.is_over or now >= until:
            break
        if changes:
            changed_at = now
        elif now - changed_at >= remind_after:
            changed_at = now
            yield watch.waiting(now, until - now)
        now = clock.monotonic()
        until_next = now + interval
        # The next sample may take as long as this one, and nothing is asked closely meanwhile.
        if due := watch.close_counts(now, until_next + now - began_at):
            with contextlib.suppress(RewindMQError):
                # Counting is more urgent than the next sample.
                await brokers.count_closely(group, topic, due)
        await admin.runtime.timers.sleep(max(0.0, until_next - clock.monotonic()))
    for change in watch.end(clock.monotonic()):
        yield change
