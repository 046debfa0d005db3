"""Sends every kind of message to a broker through RewindMQ's clients, and has groups consume them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any, Final

from rewindmq import (
    AdminClient,
    ConsumeConcurrentlyStatus,
    ConsumeFromWhere,
    LocalTransactionState,
    Message,
    MessageExt,
    Producer,
    PushConsumer,
    ResponseError,
    TopicConfig,
    TransactionProducer,
)
from rewindmq.client.push.listener import (
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    MessageListener,
    MessageListenerOrderly,
    ReconsumeLater,
)
from rewindmq.protocol.body.stats import OffsetWrapper
from rewindmq.protocol.message_queue import MessageQueue
from tools.interop.store_view import Peer

QUEUES: Final = 2
TOPICS: Final = ("plain", "batch", "ordered", "later", "decided", "failing", "large")
RETRIES: Final = 2
LARGE_BYTES: Final = 200_000
HASH_SLOTS, INDEX_ENTRIES = 200, 800
# Small files, so that a few hundred messages fill several of each kind. Retries come at once, and the last
# delay level waits. The broker checks no transaction during the test.
CONFIG: Final[dict[str, object]] = {
    "mappedFileSizeCommitLog": 1 << 18,
    "mappedFileSizeConsumeQueue": 6_000,
    "maxHashSlotNum": HASH_SLOTS,
    "maxIndexNum": INDEX_ENTRIES,
    "messageDelayLevel": "1s " * 17 + "2h",
    "transactionCheckInterval": 3_600_000,
    "transactionTimeOut": 3_600_000,
    "flushConsumerOffsetInterval": 1_000,
    "flushDelayOffsetInterval": 1_000,
}
_WAITING_LEVEL: Final = 18
# One transaction is committed, one rolled back, one left undecided.
ENDED_PER_FILL: Final = 2
BATCH: Final = 60
_SECONDS: Final = 300.0


class _Decisions:
    """Local transactions that end as the message's tag says."""

    def execute_local_transaction(self, message: Message, arg: Any) -> LocalTransactionState:
        assert message.tags is not None
        return LocalTransactionState(message.tags)

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        return LocalTransactionState.UNKNOW


async def fill(namesrv: str, broker: str, label: str, batches: int) -> None:
    """Send messages of every kind to a broker, and have groups of every kind consume them.

    Args:
        label: begins bodies, keys and groups, to tell fills apart.
        batches: number of batches of 60 messages.
    """
    async with AdminClient(namesrv) as admin:
        await create_topics(admin, broker, label)
    await send_all(namesrv, label, batches)
    await consume_all(namesrv, broker, label, batches)


async def create_topics(admin: AdminClient, broker: str, label: str) -> None:
    """Create the topics that ``send_all`` sends to, and wait for their routes."""
    # The retry topic, too, because consumers would learn of it half a minute later.
    queues = dict.fromkeys(TOPICS, QUEUES) | {f"%RETRY%failing-{label}": 1}
    for topic, count in queues.items():
        config = TopicConfig(topic_name=topic, read_queue_nums=count, write_queue_nums=count)
        await admin.topics.create_and_update_topic_config(broker, config)
    async with asyncio.timeout(_SECONDS):
        # The name server sends no notification of new routes.
        while not queues.keys() <= {*await admin.topics.fetch_all_topic_list()}:  # noqa: ASYNC110
            await asyncio.sleep(0.1)


async def send_all(namesrv: str, label: str, batches: int) -> None:
    """Send messages of every kind; their bodies and keys begin with ``label``.

    Args:
        batches: number of batches of 60 messages.
    """
    chance = random.Random(label)
    async with Producer(f"producer-{label}", namesrv) as producer:
        for number in range(5):
            text = f"{label} {number} 时光"
            properties = {"a": str(number), "название": "значение"}
            await producer.send(
                Message("plain", text.encode(), "TagA", f"n{number} shared", properties=properties)
            )
        first = min(await producer.fetch_publish_message_queues("batch"))
        for number in range(batches):
            messages = [
                Message("batch", f"{label} {number}.{inner}".encode(), "TagB", f"{label}-{number}-{inner}")
                for inner in range(BATCH)
            ]
            await producer.send_batch(messages, queue=first)
        queues = sorted(await producer.fetch_publish_message_queues("ordered"))
        for number in range(8):
            message = Message("ordered", f"{label} {number}".encode(), keys=f"{label}-o{number}")
            await producer.send(message, queue=queues[number % QUEUES])
        for level in (1, _WAITING_LEVEL):
            message = Message("later", f"{label} level {level}".encode(), "TagD", delay_level=level)
            await producer.send(message)
        await producer.send(Message("large", chance.randbytes(LARGE_BYTES), keys=f"{label}-large"))
        await producer.send(Message("large", f"{label} packs well ".encode() * 4_000, keys=f"{label}-zip"))
        await producer.send(Message("failing", f"{label} fails".encode(), label))
    async with TransactionProducer(f"deciders-{label}", namesrv, listener=_Decisions()) as decider:
        for state in LocalTransactionState:
            message = Message("decided", f"{label} {state}".encode(), state.value, f"{label}-{state.value}")
            await decider.send_message_in_transaction(message)


async def consume_all(namesrv: str, broker: str, label: str, batches: int) -> None:
    """Consume with new groups: concurrent ones, an orderly one, and one whose message always fails."""
    failing = f"failing-{label}"
    await asyncio.gather(
        consume(namesrv, f"readers-{label}", "batch", batches * BATCH),
        consume(namesrv, f"orderly-{label}", "ordered", 8, orderly=True),
        consume(
            namesrv, failing, "failing", 1 + RETRIES, label, fails=True, until=_dead_letter(broker, failing)
        ),
        consume(namesrv, f"delayed-{label}", "later", 1),
        consume(namesrv, f"decided-{label}", "decided", 1),
    )


def _dead_letter(broker: str, group: str) -> Callable[[], bool]:
    def is_there() -> bool:
        with Peer(broker) as peer:
            return peer.max_offset(f"%DLQ%{group}", 0) > 0

    return is_there


async def consume(
    namesrv: str,
    group: str,
    topic: str,
    count: int,
    expression: str = "*",
    *,
    orderly: bool = False,
    fails: bool = False,
    until: Callable[[], bool] = lambda: True,
) -> list[MessageExt]:
    """Return what a new group of one consumer gets, once ``count`` messages came and ``until()`` holds."""
    consumer = PushConsumer(
        group,
        namesrv,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        max_reconsume_times=RETRIES if fails else None,
        consume_message_batch_max_size=64,
    )
    got: list[MessageExt] = []
    enough = asyncio.Event()

    def take(messages: Sequence[MessageExt]) -> None:
        got.extend(messages)
        if len(got) >= count:
            enough.set()

    consumer.subscribe(topic, expression)
    if orderly:
        consumer.register_orderly_listener(_in_order(take))
    else:
        consumer.register_message_listener(_at_once(take, fails=fails))
    await consumer.start()
    try:
        async with asyncio.timeout(_SECONDS):
            await enough.wait()
            while not until():  # noqa: ASYNC110 - the broker sends no event
                await asyncio.sleep(0.1)
            await _commit(consumer, namesrv, topic, 1 if fails else count)
    finally:
        await consumer.shutdown()
    return got


async def _commit(consumer: PushConsumer, namesrv: str, topic: str, least: int) -> None:
    """Persist the group's offsets until they add up to ``least`` or more and the broker has stored them all.

    A RocketMQ broker may lose one of a new group's first commits if they arrive together: each creates the
    group's table (ConsumerOffsetManager#commitOffset).
    """
    async with AdminClient(namesrv) as admin:
        while True:
            await consumer.persist_offsets()
            wanted = consumer.offsets_in_memory(topic)
            stored = await _stored(admin, consumer.group, topic)
            if sum(wanted.values()) >= least and all(
                queue in stored and stored[queue].consumer_offset >= offset
                for queue, offset in wanted.items()
            ):
                return
            await asyncio.sleep(0.1)


async def _stored(admin: AdminClient, group: str, topic: str) -> dict[MessageQueue, OffsetWrapper]:
    try:
        return (await admin.groups.examine_consume_stats(group, topic)).offset_table
    except ResponseError:
        # The name server does not know the group's retry topic yet, by which its brokers are found.
        return {}


_Take = Callable[[Sequence[MessageExt]], None]


def _at_once(take: _Take, *, fails: bool) -> MessageListener:
    async def listen(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus | ReconsumeLater:
        take(messages)
        return ReconsumeLater(delay_level=1) if fails else ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    return listen


def _in_order(take: _Take) -> MessageListenerOrderly:
    async def listen(messages: Sequence[MessageExt], context: ConsumeOrderlyContext) -> ConsumeOrderlyStatus:
        take(messages)
        return ConsumeOrderlyStatus.SUCCESS

    return listen
