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
    timers, workers = context.runtime.timers, context.runtime.workers
    await run_slices(timers, store.cleaner.end_unused_topics(context.tables.topics.names))
    if store.cleaner.has_former:
        await workers.run(store.cleaner.delete_former_files)
        await run_slices(timers, store.cleaner.delete_former())
    if store.flushed_offset < store.max_commit_log_offset:
        await workers.run(store.flush)
