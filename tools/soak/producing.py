"""The producer of the soak: a task for each way to send."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence
from typing import Any, Final

from rewindmq.client.produce.producer import Producer
from rewindmq.client.produce.send_result import SendResult
from rewindmq.client.produce.transaction import LocalTransactionState
from rewindmq.client.produce.transaction_producer import TransactionProducer
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.message import Message, MessageExt
from rewindmq.protocol.message_queue import MessageQueue
from tools.soak.context import WorkerContext
from tools.soak.journal import Intent, now_us, queue_token
from tools.soak.message import (
    CONCURRENT,
    DELAYED,
    ORDERLY,
    TOPICS,
    TRANSACTION,
    MessageId,
    is_committed,
    is_left_open,
    make_body,
    read_body,
    tag_of,
)
from tools.soak.options import DELAY_SECONDS

PRODUCER_GROUP: Final = "SoakProducer"
# Shares of all messages: concurrent (single and batch), in order, delayed, in transactions.
_SHARES: Final = {CONCURRENT: 0.55, ORDERLY: 0.3, DELAYED: 0.07, TRANSACTION: 0.08}
_BATCH: Final = 16
_IN_FLIGHT: Final = 64
# Pause after a failed ordered send, s: if the broker still stores the message, it does so before the next
# one.
_FAILED_SECONDS: Final = 0.5

_log = logging.getLogger(__name__)


async def produce(context: WorkerContext) -> None:
    """Send until told to stop; then stay until the end, to answer brokers that check transactions."""
    async with _make_producer(context) as producer:
        sender = _Sender(context, producer)
        async with asyncio.TaskGroup() as sending:
            sending.create_task(sender.send_concurrent())
            sending.create_task(sender.send_in_order())
            sending.create_task(sender.send_delayed())
            sending.create_task(sender.send_transactions())
        await context.ending.wait()


def _make_producer(context: WorkerContext) -> Producer:
    if "transactions" in context.without:
        return Producer(PRODUCER_GROUP, context.namesrv, runtime=context.runtime, profile=context.profile)
    return TransactionProducer(
        PRODUCER_GROUP,
        context.namesrv,
        listener=_Transactions(),
        runtime=context.runtime,
        profile=context.profile,
    )


class _Transactions:
    """Local transactions whose outcome follows from the message, so that any producer can return it."""

    async def execute_local_transaction(self, message: Message, arg: Any) -> LocalTransactionState:
        message_id = read_body(message.body)
        assert message_id is not None
        return LocalTransactionState.UNKNOW if is_left_open(message_id) else _outcome(message_id)

    async def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        message_id = read_body(message.body)
        # The ledger has no such message, so the checker notices if it is committed.
        return LocalTransactionState.COMMIT_MESSAGE if message_id is None else _outcome(message_id)


def _outcome(message: MessageId) -> LocalTransactionState:
    if is_committed(message):
        return LocalTransactionState.COMMIT_MESSAGE
    return LocalTransactionState.ROLLBACK_MESSAGE


class _Sender:
    def __init__(self, context: WorkerContext, producer: Producer) -> None:
        self._context = context
        self._producer = producer
        self._next_number = 0
        self._random = random.Random(context.producer)
        self._permits = asyncio.Semaphore(_IN_FLIGHT)

    # Each way to send.

    async def send_concurrent(self) -> None:
        """Send single messages, batches and oneway messages, without waiting between them."""
        context, chance = self._context, self._random
        pending: set[asyncio.Task[None]] = set()
        # A batch has eight messages or so.
        mean = 1 + 0.05 * (_BATCH / 2)
        while await context.pause(chance.expovariate(self._rate(CONCURRENT) / mean)):
            await self._permits.acquire()
            kind = chance.random()
            if kind < 0.05:
                work = self._batch(chance.randint(2, _BATCH))
            elif kind < 0.07:
                work = self._oneway()
            else:
                work = self._single()
            task = asyncio.create_task(work)
            pending.add(task)
            task.add_done_callback(pending.discard)
            task.add_done_callback(lambda _: self._permits.release())
        await asyncio.gather(*pending)

    async def send_in_order(self) -> None:
        """Send to every queue in order: each send waits for the one before."""
        if "orderly" in self._context.without:
            return
        queues = await self._queues(TOPICS[ORDERLY])
        async with asyncio.TaskGroup() as sending:
            for queue in queues:
                sending.create_task(self._send_in_order_to(queue, self._rate(ORDERLY) / len(queues)))

    async def _send_in_order_to(self, queue: MessageQueue, rate: float) -> None:
        while await self._context.pause(self._random.expovariate(rate)):
            message_id, message = self._make(ORDERLY)
            try:
                result = await self._producer.send(message, queue=queue)
            except RewindMQError as error:
                self._failed(error)
                await self._context.pause(_FAILED_SECONDS)
            else:
                self._acked(ORDERLY, [message_id], result)

    async def send_delayed(self) -> None:
        """Send delayed messages, each at one of the short levels."""
        if "delays" in self._context.without:
            return
        while await self._context.pause(self._random.expovariate(self._rate(DELAYED))):
            level = self._random.randrange(len(DELAY_SECONDS)) + 1
            message_id, message = self._make(DELAYED, level)
            try:
                await self._producer.send(message)
            except RewindMQError as error:
                self._failed(error)
            else:
                self._acked(DELAYED, [message_id], None)

    async def send_transactions(self) -> None:
        """Send half messages; ``_Transactions`` decides how each transaction ends."""
        producer = self._producer
        if not isinstance(producer, TransactionProducer):
            return
        while await self._context.pause(self._random.expovariate(self._rate(TRANSACTION))):
            message_id, message = self._make(TRANSACTION)
            try:
                await producer.send_message_in_transaction(message)
            except RewindMQError as error:
                self._failed(error)
            else:
                self._acked(TRANSACTION, [message_id], None)

    # One send.

    async def _single(self) -> None:
        message_id, message = self._make(CONCURRENT)
        try:
            result = await self._producer.send(message)
        except RewindMQError as error:
            self._failed(error)
        else:
            self._acked(CONCURRENT, [message_id], result)

    async def _batch(self, count: int) -> None:
        made = [self._make(CONCURRENT) for _ in range(count)]
        try:
            result = await self._producer.send_batch([message for _, message in made])
        except RewindMQError as error:
            self._failed(error)
        else:
            self._acked(CONCURRENT, [message_id for message_id, _ in made], result)

    async def _oneway(self) -> None:
        """Send oneway: the message may be lost, so no group is owed it."""
        _, message = self._make(CONCURRENT)
        try:
            await self._producer.send_oneway(message)
        except RewindMQError as error:
            self._failed(error)

    def _make(self, topic: str, delay_level: int = 0) -> tuple[MessageId, Message]:
        """Return the next message, after writing its intent to the journal."""
        message_id = MessageId(self._context.producer, self._next_number)
        self._next_number += 1
        delay = DELAY_SECONDS[delay_level - 1] if delay_level else 0
        intent = Intent(now_us(), message_id.number, topic, int(delay * self._context.time_scale * 1_000_000))
        self._context.journal.intents([intent])
        self._context.counts["sent"] += 1
        message = Message(
            TOPICS[topic],
            make_body(message_id),
            tag_of(message_id),
            f"{message_id.producer}-{message_id.number}",
            delay_level=delay_level,
        )
        return message_id, message

    def _acked(self, topic: str, messages: Sequence[MessageId], result: SendResult | None) -> None:
        """Journal the acknowledgement of one request; its messages are stored one after another.

        ``result`` is None if the broker stores them in a queue other than the one they were sent to.
        """
        for index, message in enumerate(messages):
            if result is None:
                self._context.journal.ack(message.number, "", 0)
            else:
                queue = result.message_queue
                token = queue_token(topic, queue.broker_name, queue.queue_id)
                self._context.journal.ack(message.number, token, result.queue_offset + index)
        self._context.counts["acked"] += len(messages)

    def _failed(self, error: RewindMQError) -> None:
        """Count a failed send; the broker may have stored the message nevertheless."""
        self._context.counts["failed"] += 1
        _log.info("send failed: %s", error)

    def _rate(self, topic: str) -> float:
        return self._context.rate * _SHARES[topic]

    async def _queues(self, topic: str) -> list[MessageQueue]:
        while True:
            try:
                return await self._producer.fetch_publish_message_queues(topic)
            except RewindMQError as error:
                self._failed(error)
                if not await self._context.pause(_FAILED_SECONDS):
                    return []
