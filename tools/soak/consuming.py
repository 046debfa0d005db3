"""The consumers of the soak: push, orderly, lite pull and pull."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence
from typing import Final

from rewindmq.client.consume.pull_result import PullStatus
from rewindmq.client.lite.lite_pull_consumer import LitePullConsumer
from rewindmq.client.pull.pull_consumer import PullConsumer
from rewindmq.client.push.listener import (
    ConsumeConcurrentlyStatus,
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
)
from rewindmq.client.push.push_consumer import PushConsumer
from rewindmq.protocol.body.heartbeat import ConsumeFromWhere
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message.properties import RETRY_TOPIC
from rewindmq.protocol.message_queue import MessageQueue
from tools.soak.context import WorkerContext
from tools.soak.journal import ACCEPTED, REFUSED, SUSPENDED, Delivered, now_us, queue_token
from tools.soak.message import RETRY, TOPICS, MessageId, failures_of, read_body
from tools.soak.options import SoakGroup
from tools.soak.pauses import pause

_LETTERS: Final = {name: letter for letter, name in TOPICS.items()}
_UNKNOWN: Final = MessageId(-1, -1)
# The longest time, s, that a slow listener call takes.
_SLOW_SECONDS: Final = 0.2
_SUSPEND_SHARE: Final = 0.01
_LOOK_SECONDS: Final = 1.0
# Seconds until a puller pulls again from a queue that had no message, or whose broker refused the pull.
_EMPTY_SECONDS: Final = 0.25
_FAILED_SECONDS: Final = 0.5

_log = logging.getLogger(__name__)


class _Listener:
    """The part that all listeners share: write deliveries with the verdict to the journal, then return it."""

    def __init__(self, context: WorkerContext) -> None:
        assert context.group is not None
        self.group: SoakGroup = context.group
        self._context = context
        self.random = random.Random()
        self._limit = None if "retries" in context.without else context.group.rules.max_reconsume_times

    def refuses(self, messages: Sequence[MessageExt]) -> bool:
        """True if a listener still has to refuse one of the messages."""
        limit = self._limit
        return limit is not None and any(
            failures_of(read_body(message.body) or _UNKNOWN, limit) > message.reconsume_times
            for message in messages
        )

    def journal(self, messages: Sequence[MessageExt], verdict: str) -> None:
        if not messages:
            return
        chain = self._context.chain()
        self._context.journal.deliveries([_delivery(message, verdict, chain) for message in messages])
        self._context.counts["delivered"] += len(messages)

    async def delay_sometimes(self) -> None:
        """Be slow now and then."""
        if self.random.random() < self.group.slow:
            await pause(self.random.random() * _SLOW_SECONDS)


def _delivery(message: MessageExt, verdict: str, chain: int) -> Delivered:
    topic = RETRY if RETRY_TOPIC in message.properties else _LETTERS[message.topic]
    queue = queue_token(topic, message.broker_name, message.queue_id)
    message_id = read_body(message.body) or _UNKNOWN
    return Delivered(
        now_us(), queue, message.queue_offset, *message_id, message.reconsume_times, verdict, chain
    )


def _push_consumer(context: WorkerContext, batch: int) -> PushConsumer:
    assert context.group is not None
    rules = context.group.rules
    consumer = PushConsumer(
        rules.name,
        context.namesrv,
        runtime=context.runtime,
        profile=context.profile,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        consume_thread_max=context.group.threads,
        consume_message_batch_max_size=batch,
        max_reconsume_times=rules.max_reconsume_times,
    )
    for topic in rules.topics:
        is_tagged = rules.tags is not None and topic == "c"
        consumer.subscribe(TOPICS[topic], " || ".join(sorted(rules.tags or ())) if is_tagged else "*")
    return consumer


async def consume_pushed(context: WorkerContext) -> None:
    """Run a concurrent push consumer; a group that refuses messages gets them one by one."""
    listener = _Listener(context)

    async def listen(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        is_refused = listener.refuses(messages)
        listener.journal(messages, REFUSED if is_refused else ACCEPTED)
        await listener.delay_sometimes()
        if is_refused:
            return ConsumeConcurrentlyStatus.RECONSUME_LATER
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    consumer = _push_consumer(context, 4 if listener.group.rules.max_reconsume_times is None else 1)
    consumer.register_message_listener(listen)
    async with consumer:
        await context.ending.wait()


async def consume_orderly(context: WorkerContext) -> None:
    """Run an orderly push consumer that suspends its queue now and then."""
    listener = _Listener(context)

    async def listen(messages: Sequence[MessageExt], context: ConsumeOrderlyContext) -> ConsumeOrderlyStatus:
        is_suspended = listener.random.random() < _SUSPEND_SHARE
        listener.journal(messages, SUSPENDED if is_suspended else ACCEPTED)
        await listener.delay_sometimes()
        if is_suspended:
            context.suspend_current_queue_time_millis = 1_000
            return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
        return ConsumeOrderlyStatus.SUCCESS

    consumer = _push_consumer(context, 1)
    consumer.register_orderly_listener(listen)
    async with consumer:
        await context.ending.wait()


async def consume_lite(context: WorkerContext) -> None:
    """Run a lite pull consumer with automatic commits."""
    assert context.group is not None
    listener = _Listener(context)
    consumer = LitePullConsumer(
        context.group.name,
        context.namesrv,
        runtime=context.runtime,
        profile=context.profile,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    )
    for topic in context.group.rules.topics:
        consumer.subscribe(TOPICS[topic])
    async with consumer:
        while not context.ending.is_set():
            # Polled messages count as consumed, so they enter the journal before anything else happens.
            listener.journal(await consumer.poll(), ACCEPTED)
            await listener.delay_sometimes()


async def consume_pulling(context: WorkerContext) -> None:
    """Run a pull consumer that pulls from all queues and stores its offsets itself."""
    assert context.group is not None
    consumer = PullConsumer(
        context.group.name, context.namesrv, runtime=context.runtime, profile=context.profile
    )
    listener = _Listener(context)
    pulled: set[MessageQueue] = set()
    async with consumer, asyncio.TaskGroup() as pulling:
        while not context.ending.is_set():
            for topic in context.group.rules.topics:
                # A name server that has just started does not know all queues yet.
                for queue in await _queues(consumer, TOPICS[topic]):
                    if queue not in pulled:
                        pulled.add(queue)
                        pulling.create_task(_pull(context, consumer, listener, queue))
            await pause(_LOOK_SECONDS)


async def _queues(consumer: PullConsumer, topic: str) -> list[MessageQueue]:
    try:
        return await consumer.fetch_subscribe_message_queues(topic)
    except RewindMQError as error:
        _log.info("no queues: %s", error)
        return []


async def _pull(
    context: WorkerContext, consumer: PullConsumer, listener: _Listener, queue: MessageQueue
) -> None:
    """Pull from one queue, from the group's committed offset on."""
    offset = -1
    while not context.ending.is_set():
        try:
            if offset < 0:
                offset = max(0, await consumer.fetch_consume_offset(queue, from_store=True))
            result = await consumer.pull(queue, "*", offset, 32)
            if result.messages:
                listener.journal(result.messages, ACCEPTED)
            if result.status is PullStatus.OFFSET_ILLEGAL:
                _log.warning("%s: offset %d is illegal, next is %d", queue, offset, result.next_begin_offset)
            offset = result.next_begin_offset
            consumer.update_consume_offset(queue, offset)
            await consumer.persist_consume_offset(queue)
            if not result.messages:
                await pause(_EMPTY_SECONDS)
        except RewindMQError as error:
            _log.info("pull failed: %s", error)
            await pause(_FAILED_SECONDS)
