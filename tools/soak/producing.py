"""A producer of the soak: each way to send has a task of its own."""

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
from tools.soak.stage import Stage

PRODUCER_GROUP: Final = "SoakProducer"
# Of all messages: concurrent ones (singles and batches), in order, delayed, in transactions.
_SHARES: Final = {CONCURRENT: 0.55, ORDERLY: 0.3, DELAYED: 0.07, TRANSACTION: 0.08}
_BATCH: Final = 16
_IN_FLIGHT: Final = 64
# After a send in order has failed, so that it cannot be stored behind the next one.
_FAILED_SECONDS: Final = 0.5

_log = logging.getLogger(__name__)


async def produce(stage: Stage) -> None:
    """Send until told to stop; then stay, for transactions that brokers ask about, until the end."""
    async with _make_producer(stage) as producer:
        sender = _Sender(stage, producer)
        async with asyncio.TaskGroup() as sending:
            sending.create_task(sender.send_concurrent())
            sending.create_task(sender.send_in_order())
            sending.create_task(sender.send_delayed())
            sending.create_task(sender.send_transactions())
        await stage.ending.wait()


def _make_producer(stage: Stage) -> Producer:
    if "transactions" in stage.without:
        return Producer(PRODUCER_GROUP, stage.namesrv, runtime=stage.runtime, profile=stage.profile)
    return TransactionProducer(
        PRODUCER_GROUP,
        stage.namesrv,
        listener=_Transactions(),
        runtime=stage.runtime,
        profile=stage.profile,
    )


class _Transactions:
    """Local transactions whose outcome follows from the message, so that any producer can tell it."""

    async def execute_local_transaction(self, message: Message, arg: Any) -> LocalTransactionState:
        who = read_body(message.body)
        assert who is not None
        return LocalTransactionState.UNKNOW if is_left_open(who) else _outcome(who)

    async def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        who = read_body(message.body)
        # The ledger has no such message, so the checker sees it if it is committed.
        return LocalTransactionState.COMMIT_MESSAGE if who is None else _outcome(who)


def _outcome(message: MessageId) -> LocalTransactionState:
    if is_committed(message):
        return LocalTransactionState.COMMIT_MESSAGE
    return LocalTransactionState.ROLLBACK_MESSAGE


class _Sender:
    def __init__(self, stage: Stage, producer: Producer) -> None:
        self._stage = stage
        self._producer = producer
        self._next_number = 0
        self._random = random.Random(stage.producer)
        self._permits = asyncio.Semaphore(_IN_FLIGHT)

    # Each way to send.

    async def send_concurrent(self) -> None:
        """Singles, batches and oneways, not waiting for each other."""
        stage, chance = self._stage, self._random
        pending: set[asyncio.Task[None]] = set()
        # A batch stands for eight messages or so.
        mean = 1 + 0.05 * (_BATCH / 2)
        while await stage.pause(chance.expovariate(self._rate(CONCURRENT) / mean)):
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
        """To every queue one after another, each waiting for the one before."""
        if "orderly" in self._stage.without:
            return
        queues = await self._queues(TOPICS[ORDERLY])
        async with asyncio.TaskGroup() as sending:
            for queue in queues:
                sending.create_task(self._send_in_order_to(queue, self._rate(ORDERLY) / len(queues)))

    async def _send_in_order_to(self, queue: MessageQueue, rate: float) -> None:
        while await self._stage.pause(self._random.expovariate(rate)):
            message_id, message = self._make(ORDERLY)
            try:
                result = await self._producer.send(message, queue=queue)
            except RewindMQError as error:
                self._failed(error)
                await self._stage.pause(_FAILED_SECONDS)
            else:
                self._acked(ORDERLY, [message_id], result)

    async def send_delayed(self) -> None:
        """Each at one of the short levels."""
        if "delays" in self._stage.without:
            return
        while await self._stage.pause(self._random.expovariate(self._rate(DELAYED))):
            level = self._random.randrange(len(DELAY_SECONDS)) + 1
            message_id, message = self._make(DELAYED, level)
            try:
                await self._producer.send(message)
            except RewindMQError as error:
                self._failed(error)
            else:
                self._acked(DELAYED, [message_id], None)

    async def send_transactions(self) -> None:
        """Half messages; what becomes of them is ``_Transactions``' to say."""
        producer = self._producer
        if not isinstance(producer, TransactionProducer):
            return
        while await self._stage.pause(self._random.expovariate(self._rate(TRANSACTION))):
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
        """Send without an answer: the message may be lost, so it is never owed."""
        _, message = self._make(CONCURRENT)
        try:
            await self._producer.send_oneway(message)
        except RewindMQError as error:
            self._failed(error)

    def _make(self, topic: str, delay_level: int = 0) -> tuple[MessageId, Message]:
        """The next message, in the books."""
        message_id = MessageId(self._stage.producer, self._next_number)
        self._next_number += 1
        delay = DELAY_SECONDS[delay_level - 1] if delay_level else 0
        intent = Intent(now_us(), message_id.number, topic, int(delay * self._stage.time_scale * 1_000_000))
        self._stage.journal.intents([intent])
        self._stage.counts["sent"] += 1
        message = Message(
            TOPICS[topic],
            make_body(message_id),
            tag_of(message_id),
            f"{message_id.producer}-{message_id.number}",
            delay_level=delay_level,
        )
        return message_id, message

    def _acked(self, topic: str, messages: Sequence[MessageId], result: SendResult | None) -> None:
        """Messages of one request lie one after another; None where their queue is not the one sent to."""
        for index, message in enumerate(messages):
            if result is None:
                self._stage.journal.ack(message.number, "", 0)
            else:
                queue = result.message_queue
                token = queue_token(topic, queue.broker_name, queue.queue_id)
                self._stage.journal.ack(message.number, token, result.queue_offset + index)
        self._stage.counts["acked"] += len(messages)

    def _failed(self, error: RewindMQError) -> None:
        """It may be stored all the same."""
        self._stage.counts["failed"] += 1
        _log.info("send failed: %s", error)

    def _rate(self, topic: str) -> float:
        return self._stage.rate * _SHARES[topic]

    async def _queues(self, topic: str) -> list[MessageQueue]:
        while True:
            try:
                return await self._producer.fetch_publish_message_queues(topic)
            except RewindMQError as error:
                self._failed(error)
                if not await self._stage.pause(_FAILED_SECONDS):
                    return []
