"""Builds the timer messages' parts of a broker."""

from __future__ import annotations

from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.send.appender import MessageAppender
from rewindmq.broker.store.files.disk import Disk
from rewindmq.broker.store.store import MessageStore
from rewindmq.broker.store.timer.index import TimerIndex
from rewindmq.broker.timer.hook import TimerHook
from rewindmq.broker.timer.service import TimerService
from rewindmq.broker.timer.timers import TimerMessages
from rewindmq.protocol.remoting.runtime import Runtime


def build(
    runtime: Runtime, config: BrokerConfig, disk: Disk, store: MessageStore, appender: MessageAppender
) -> TimerMessages:
    """Open the timer files of an open store, and connect the parts.

    Raises:
        StoreError: the disk fails.
    """
    settings = config.store
    index = TimerIndex(config.root, settings, disk, store)
    index.open()
    service = TimerService(
        runtime,
        store,
        appender,
        index,
        flush_seconds=settings.timer_flush_interval_ms / 1_000,
        deletes_by_topic=settings.append_topic_for_timer_delete_key,
    )
    hook = TimerHook(settings, runtime.clock, runtime.random, service.expect, index.count_of)
    return TimerMessages(runtime.clock, store, appender, index, hook, service)
