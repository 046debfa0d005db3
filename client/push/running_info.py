"""Adds the details of a push consumer to GET_CONSUMER_RUNNING_INFO (307, docs/spec/protocol.md 5.6).

Source: RocketMQ 4.9.4 ``DefaultMQPushConsumerImpl#consumerRunningInfo``, ``MQClientInstance``.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from rewindmq.client.consume.orderly_queue import OrderlyProcessQueue
from rewindmq.client.consume.process_queue import ProcessQueue
from rewindmq.client.consume.running_info import InfoProperty
from rewindmq.client.push.host import PushHost
from rewindmq.protocol.body.running_info import ConsumerRunningInfo, ProcessQueueInfo


async def add_push_details(info: ConsumerRunningInfo, consumer: PushHost) -> None:
    """Add a push consumer's settings, its queues, and its consumption rates.

    Raises:
        RewindMQError: the offset of a queue is not in memory, and the broker did not return it.
    """
    info.properties.update(_settings(consumer.options))
    info.properties[InfoProperty.CONSUME_ORDERLY] = _java(consumer.consume_service.is_orderly)
    info.properties[InfoProperty.THREADPOOL_CORE_SIZE] = str(consumer.consume_service.limit)
    consumer.gather_statistics()
    queues = dict(consumer.process_queues)
    for queue, process_queue in queues.items():
        details = _queue_info(consumer, process_queue)
        details.commit_offset = await consumer.offset_store.read(queue)
        info.mq_table[queue] = details
    now = consumer.runtime.clock.monotonic()
    info.status_table = {topic: consumer.statistics.status(topic, now) for topic in consumer.subscriptions}


def _queue_info(consumer: PushHost, process_queue: ProcessQueue) -> ProcessQueueInfo:
    clock = consumer.runtime.clock
    now, now_ms = clock.monotonic(), clock.now_ms()

    def wall(moment: float) -> int:
        """Return a protocol time as ms since the epoch: now, minus its age in protocol time."""
        return now_ms - round(1_000 * (now - moment))

    first, last = process_queue.cached_offsets
    info = ProcessQueueInfo(
        cached_msg_min_offset=first,
        cached_msg_max_offset=last,
        cached_msg_count=process_queue.cached_count,
        cached_msg_size_in_mi_b=process_queue.cached_bytes >> 20,
        droped=process_queue.dropped,
        last_pull_timestamp=wall(process_queue.last_pull),
        last_consume_timestamp=wall(process_queue.last_consume),
    )
    if isinstance(process_queue, OrderlyProcessQueue):
        taken = process_queue.taken_offsets
        info.transaction_msg_count = len(taken)
        if taken:
            info.transaction_msg_min_offset, info.transaction_msg_max_offset = taken[0], taken[-1]
        info.locked = process_queue.locked
        info.try_unlock_times = process_queue.try_unlock_times
        info.last_lock_timestamp = wall(process_queue.last_lock)
    return info


def _settings(options: Any) -> dict[str, str]:
    """Return the options as texts, under Java's names."""
    settings = {}
    for option in dataclasses.fields(options):
        value = getattr(options, option.name)
        if value is not None:
            first, *rest = option.name.split("_")
            settings[first + "".join(map(str.capitalize, rest))] = _text(value)
    return settings


def _text(value: object) -> str:
    if isinstance(value, bool):
        return _java(value)
    return type(value).__name__ if type(value).__repr__ is object.__repr__ else str(value)


def _java(value: bool) -> str:
    return "true" if value else "false"
