"""Transactions between processes: a producer and a broker are killed, and no committed message is lost."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Sequence

import pytest

from rewindmq import (
    ConsumeConcurrentlyStatus,
    ConsumeFromWhere,
    LocalCluster,
    LocalTransactionState,
    Message,
    MessageExt,
    PushConsumer,
    TransactionProducer,
)
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.runtime import system_runtime
from tests.support.processes import WAIT_SECONDS

TIME_SCALE = 0.05
# Milliseconds; the time scale shortens both.
BROKER = {"transactionCheckInterval": "10000", "transactionTimeOut": "100"}

COMMITTED = {b"0", b"2", b"100", b"102", b"104"}


class ByBody:
    """A transaction listener that commits messages whose body is an even number."""

    def __init__(self) -> None:
        self.checked: list[bytes] = []

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        return _state_of(message.body)

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        self.checked.append(message.body)
        return _state_of(message.body)


def _state_of(body: bytes) -> LocalTransactionState:
    is_even = int(body) % 2 == 0
    return LocalTransactionState.COMMIT_MESSAGE if is_even else LocalTransactionState.ROLLBACK_MESSAGE


async def half_messages_of_a_dead_producer(namesrv: str) -> None:
    """Send half messages 100 to 105 by a producer that ends without a commit or rollback."""
    arguments = ["produce", "-n", namesrv, "-t", "T", "-g", "TP", "-c", "6", "--first", "100"]
    await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "rewindmq", *arguments, "--body", "{i}", "--transaction", "unknown"],
        check=True,
        capture_output=True,
        timeout=WAIT_SECONDS,
    )


@pytest.mark.parametrize(
    "profile",
    ["v49", pytest.param("v53", marks=pytest.mark.slow(full_only="the checks of v49 are the same"))],
)
async def test_another_producer_of_the_group_resolves_the_transactions_of_a_dead_one(profile: str) -> None:
    """The broker is killed and restarted between the half messages and the checks."""
    received: list[bytes] = []
    everything = asyncio.Event()

    async def listener(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        received.extend(message.body for message in messages)
        if set(received) >= COMMITTED:
            everything.set()
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    runtime = system_runtime(time_scale=TIME_SCALE)
    async with LocalCluster(
        brokers=1, time_scale=TIME_SCALE, profile=Profile(profile), broker_config=BROKER
    ) as cluster:
        address = cluster.namesrv_address
        await half_messages_of_a_dead_producer(address)
        await cluster.kill("broker-a")
        await cluster.restart("broker-a")
        consumer = PushConsumer(
            "G",
            address,
            runtime=runtime,
            profile=profile,
            consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        )
        consumer.subscribe("T")
        consumer.register_message_listener(listener)
        transactions = ByBody()
        producer = TransactionProducer("TP", address, listener=transactions, runtime=runtime, profile=profile)
        async with consumer, producer:
            for number in range(4):
                await producer.send_message_in_transaction(Message("T", b"%d" % number))
            await asyncio.wait_for(everything.wait(), WAIT_SECONDS)
    runtime.workers.close()
    # If the broker repeats a check before it has processed the first reply, the producer replies twice. The
    # message may then be delivered twice, as in RocketMQ (docs/transactions.md).
    assert set(received) == COMMITTED
    # The committed messages of the dead producer; the broker may have checked others, too.
    assert {b"100", b"102", b"104"} <= set(transactions.checked)
