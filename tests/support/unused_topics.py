"""Removes the queues of deleted topics, as brokers do, in one step."""

from __future__ import annotations

from collections.abc import Collection

from rewindmq.broker.store.cleaner import StoreCleaner
from rewindmq.protocol.remoting.slices.run import run_at_once


def remove_unused_topics(cleaner: StoreCleaner, topics: Collection[str]) -> int:
    """End all topics except ``topics`` and delete their files; return the number of queues removed."""
    run_at_once(cleaner.end_unused_topics(topics))
    return run_at_once(cleaner.delete_former())
