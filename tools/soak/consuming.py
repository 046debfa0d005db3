"""Members of the soak's consumer groups."""

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
from tools.soak.journal import ACCEPTED, REFUSED, SUSPENDED, Delivery, now_us, queue_token
from tools.soak.message import RETRY, TOPICS, MessageId, failures_of, read_body
from tools.soak.options import Group
from tools.soak.pauses import pause
from tools.soak.stage import Stage

_LETTERS: Final = {name: letter for letter, name in TOPICS.items()}
_NOBODY: Final = MessageId(-1, -1)
# At most, where a listener takes its time.
_SLOW_SECONDS: Final = 0.2
_PUT_OFF: Final = 0.01
_LOOK_SECONDS: Final = 1.0
# Until a puller asks again for a queue that had no message, or whose broker refused.
_EMPTY_SECONDS: Final = 0.25
_FAILED_SECONDS: Final = 0.5

_log = logging.getLogger(__name__)


class _Listener:
    """What every kind of listener does with messages: journal them with the verdict, before giving it."""

    def __init__(self, stage: Stage) -> None:
        assert stage.group is not None
        self.group: Group = stage.group
        self._stage = stage
        self.random = random.Random()
        self._limit = None if "retries" in stage.without else stage.group.rules.max_reconsume_times

    def refuses(self, messages: Sequence[MessageExt]) -> bool:
        """Whether one of them is still to be refused."""
        limit = self._limit
        return limit is not None and any(
            failures_of(read_body(message.body) or _NOBODY, limit) > message.reconsume_times
            for message in messages
        )

    def journal(self, messages: Sequence[MessageExt], verdict: str) -> None:
        if not messages:
            return
        chain = self._stage.chain()
        self._stage.journal.deliveries([_delivery(message, verdict, chain) for message in messages])
        self._stage.counts["delivered"] += len(messages)

    async def linger(self) -> None:
        """Be slow now and then."""
        if self.random.random() < self.group.slow:
            await pause(self.random.random() * _SLOW_SECONDS)


def _delivery(message: MessageExt, verdict: str, chain: int) -> Delivery:
    topic = RETRY if RETRY_TOPIC in message.properties else _LETTERS[message.topic]
    queue = queue_token(topic, message.broker_name, message.queue_id)
    who = read_body(message.body) or _NOBODY
    return Delivery(now_us(), queue, message.queue_offset, *who, message.reconsume_times, verdict, chain)


def _push_consumer(stage: Stage, batch: int) -> PushConsumer:
    assert stage.group is not None
    rules = stage.group.rules
    consumer = PushConsumer(
        rules.name,
        stage.namesrv,
        runtime=stage.runtime,
        profile=stage.profile,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        consume_thread_max=stage.group.threads,
        consume_message_batch_max_size=batch,
        max_reconsume_times=rules.max_reconsume_times,
    )
    for topic in rules.topics:
        is_tagged = rules.tags is not None and topic == "c"
        consumer.subscribe(TOPICS[topic], " || ".join(sorted(rules.tags or ())) if is_tagged else "*")
    return consumer


async def consume_pushed(stage: Stage) -> None:
    """A concurrent member; a group that refuses messages gets them one by one."""
    listener = _Listener(stage)

    async def listen(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        is_refused = listener.refuses(messages)
        listener.journal(messages, REFUSED if is_refused else ACCEPTED)
        await listener.linger()
        if is_refused:
            return ConsumeConcurrentlyStatus.RECONSUME_LATER
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    consumer = _push_consumer(stage, 4 if listener.group.rules.max_reconsume_times is None else 1)
    consumer.register_message_listener(listen)
    async with consumer:
        await stage.ending.wait()


async def consume_orderly(stage: Stage) -> None:
    """An orderly member, which asks for a message once more now and then."""
    listener = _Listener(stage)

    async def listen(messages: Sequence[MessageExt], context: ConsumeOrderlyContext) -> ConsumeOrderlyStatus:
        is_put_off = listener.random.random() < _PUT_OFF
        listener.journal(messages, SUSPENDED if is_put_off else ACCEPTED)
        await listener.linger()
        if is_put_off:
            context.suspend_current_queue_time_millis = 1_000
            return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
        return ConsumeOrderlyStatus.SUCCESS

    consumer = _push_consumer(stage, 1)
    consumer.register_orderly_listener(listen)
    async with consumer:
        await stage.ending.wait()


async def consume_lite(stage: Stage) -> None:
    """A lite pull consumer, which commits by itself."""
    assert stage.group is not None
    listener = _Listener(stage)
    consumer = LitePullConsumer(
        stage.group.name,
        stage.namesrv,
        runtime=stage.runtime,
        profile=stage.profile,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    )
    for topic in stage.group.rules.topics:
        consumer.subscribe(TOPICS[topic])
    async with consumer:
        while not stage.ending.is_set():
            # Polled messages count as consumed, so they are written down before anything else can happen.
            listener.journal(await consumer.poll(), ACCEPTED)
            await listener.linger()


async def consume_pulling(stage: Stage) -> None:
    """A pull consumer: all queues, offsets stored by itself."""
    assert stage.group is not None
    consumer = PullConsumer(stage.group.name, stage.namesrv, runtime=stage.runtime, profile=stage.profile)
    listener = _Listener(stage)
    pulled: set[MessageQueue] = set()
    async with consumer, asyncio.TaskGroup() as pulling:
        while not stage.ending.is_set():
            for topic in stage.group.rules.topics:
                # A name server that has just begun does not know all of them.
                for queue in await _queues(consumer, TOPICS[topic]):
                    if queue not in pulled:
                        pulled.add(queue)
                        pulling.create_task(_pull(stage, consumer, listener, queue))
            await pause(_LOOK_SECONDS)


async def _queues(consumer: PullConsumer, topic: str) -> list[MessageQueue]:
    try:
        return await consumer.fetch_subscribe_message_queues(topic)
    except RewindMQError as error:
        _log.info("no queues: %s", error)
        return []


async def _pull(stage: Stage, consumer: PullConsumer, listener: _Listener, queue: MessageQueue) -> None:
    """One queue, from where the group stands."""
    offset = -1
    while not stage.ending.is_set():
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
