"""Removal of the queues of topics without a configuration."""

from __future__ import annotations

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.remoting.slices.run import run_slices


async def remove_unused_topics(context: BrokerContext) -> None:
    """Remove the queues durably: no restart brings them back.

    Raises:
        StoreError: the disk failed.
    """
    store = context.store
    await run_slices(context.runtime.timers, store.cleaner.remove_unused_topics(context.topics.names))
    if store.flushed_offset < store.max_commit_log_offset:
        await context.runtime.workers.run(store.flush)
