"""What a consumer tells about itself: the answer to 307 (docs/spec/protocol.md 5.6).

Source: RocketMQ 4.9.4 ``DefaultMQPushConsumerImpl#consumerRunningInfo``, ``MQClientInstance``.
"""

from __future__ import annotations

import asyncio
import dataclasses
import io
import sys
import threading
import traceback
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from rewindmq.client.orderly_queue import OrderlyProcessQueue
from rewindmq.protocol.body.running_info import ConsumerRunningInfo, ProcessQueueInfo
from rewindmq.protocol.version import version_name

if TYPE_CHECKING:
    from rewindmq.client.consumer import Consumer
    from rewindmq.client.process_queue import ProcessQueue
    from rewindmq.client.push_consumer import PushConsumer

# A frame holds far more; whoever reads it does not want more.
_MAX_STACK_CHARACTERS: Final = 1 << 20
_FRAMES_PER_TASK: Final = 20


class Property(StrEnum):
    """The properties that tools look for."""

    NAMESERVER_ADDR = "PROP_NAMESERVER_ADDR"
    THREADPOOL_CORE_SIZE = "PROP_THREADPOOL_CORE_SIZE"
    CONSUME_ORDERLY = "PROP_CONSUMEORDERLY"
    CONSUME_TYPE = "PROP_CONSUME_TYPE"
    CLIENT_VERSION = "PROP_CLIENT_VERSION"
    CONSUMER_START_TIMESTAMP = "PROP_CONSUMER_START_TIMESTAMP"


def describe_consumer(consumer: Consumer) -> ConsumerRunningInfo:
    """What consumers of every kind tell: settings and subscriptions."""
    data = consumer.heartbeat_data()
    properties = {
        "consumerGroup": consumer.group,
        "messageModel": str(data.message_model),
        "consumeFromWhere": str(data.consume_from_where),
        Property.NAMESERVER_ADDR: "".join(f"{address};" for address in consumer.config.namesrv_addrs),
        Property.CONSUME_TYPE: str(data.consume_type),
        Property.CLIENT_VERSION: version_name(consumer.config.switches.announced_version),
        Property.CONSUMER_START_TIMESTAMP: str(consumer.made_at),
    }
    subscriptions = sorted(consumer.subscriptions.values(), key=lambda subscription: subscription.topic)
    return ConsumerRunningInfo(
        properties={str(key): value for key, value in properties.items()}, subscription_set=subscriptions
    )


async def describe_push_consumer(consumer: PushConsumer) -> ConsumerRunningInfo:
    """The same, with the queues it owns and how fast it goes.

    Raises:
        RewindMQError: the offset of a queue is not in memory, and the broker could not be asked.
    """
    info = describe_consumer(consumer)
    info.properties.update(_settings(consumer.options))
    info.properties[Property.CONSUME_ORDERLY] = _java(consumer.consume_service.is_orderly)
    info.properties[Property.THREADPOOL_CORE_SIZE] = str(consumer.consume_service.limit)
    consumer.gather_statistics()
    queues = dict(consumer.process_queues)
    for queue, process_queue in queues.items():
        details = _queue_info(consumer, process_queue)
        details.commit_offset = await consumer.offset_store.read(queue)
        info.mq_table[queue] = details
    now = consumer.runtime.clock.monotonic()
    info.status_table = {topic: consumer.statistics.status(topic, now) for topic in consumer.subscriptions}
    return info


def _queue_info(consumer: PushConsumer, process_queue: ProcessQueue) -> ProcessQueueInfo:
    clock = consumer.runtime.clock
    now, now_ms = clock.monotonic(), clock.now_ms()

    def wall(moment: float) -> int:
        """ms since the epoch such that its age is the age in protocol time, which may run faster."""
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
    """Options under Java's names, as texts."""
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


def running_tasks() -> str:
    """Where this process is: the stack of each task of the event loop, and of each thread.

    Java tells of its threads; here listeners run in tasks, plain ones in worker threads.
    """
    text = io.StringIO()
    for task in sorted(asyncio.all_tasks(), key=lambda task: task.get_name()):
        text.write(f"{task.get_name()} {_name_of(task)}\n")
        for frame in task.get_stack(limit=_FRAMES_PER_TASK):
            text.write(_line(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_qualname))
        text.write("\n")
    names: Mapping[int | None, str] = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, innermost in sys._current_frames().items():
        text.write(f"thread {names.get(ident, '?')} TID: {ident}\n")
        for summary in traceback.extract_stack(innermost, limit=_FRAMES_PER_TASK):
            text.write(_line(summary.filename, summary.lineno, summary.name))
        text.write("\n")
    return text.getvalue()[:_MAX_STACK_CHARACTERS]


def _name_of(task: asyncio.Task[Any]) -> str:
    coroutine = task.get_coro()
    return str(getattr(coroutine, "__qualname__", coroutine))


def _line(file: str, number: int | None, function: str) -> str:
    return f"  {file}:{number} {function}\n"
