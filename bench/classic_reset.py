"""Time from a classic reset to the reset notification at the last of many connected consumers."""

from __future__ import annotations

import asyncio
import time

from rewindmq import Message, Producer
from rewindmq.protocol.body.heartbeat import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
)
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.offset import UpdateConsumerOffsetRequestHeader
from rewindmq.protocol.header.reset import ResetOffsetRequestHeader
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.connection import Connection, Handler
from rewindmq.protocol.remoting.runtime import system_runtime
from rewindmq.protocol.subscription import build_subscription_data

TOPIC = "ClassicResetTopic"
GROUP = "ClassicResetGroup"
_QUEUES = 4
_TIMEOUT = 10.0


async def connected_consumers_notified(namesrv: str, broker: str, consumers: int, rounds: int) -> list[float]:
    """Return the milliseconds of each round; this process has the connections of all consumers."""
    await _prepare(namesrv, broker)
    runtime = system_runtime()
    missing = 0
    all_notified = asyncio.Event()

    def on_reset(connection: Connection, request: RemotingCommand) -> None:
        nonlocal missing
        missing -= 1
        if not missing:
            all_notified.set()

    handlers: dict[int, Handler] = {
        RequestCode.RESET_CONSUMER_CLIENT_OFFSET: on_reset,
        RequestCode.NOTIFY_CONSUMER_IDS_CHANGED: lambda connection, request: None,
    }
    clients = [RemotingClient(runtime, handlers) for _ in range(consumers)]
    admin = RemotingClient(runtime)
    samples = []
    try:
        for number, client in enumerate(clients):
            response = await client.invoke(broker, _heartbeat(f"127.0.0.1@{number}"), _TIMEOUT)
            response.require_success()
        for _ in range(rounds):
            missing = consumers
            all_notified.clear()
            started = time.perf_counter()
            response = await admin.invoke(broker, _reset(), _TIMEOUT)
            response.require_success()
            await all_notified.wait()
            samples.append((time.perf_counter() - started) * 1000)
    finally:
        await asyncio.gather(admin.close(), *(client.close() for client in clients))
    return samples


async def _prepare(namesrv: str, broker: str) -> None:
    """Create a topic with messages, and store an offset for each of its queues."""
    async with Producer("BenchmarkProducer", namesrv) as producer:
        for _ in range(_QUEUES):
            await producer.send(Message(TOPIC, b"x"))
    client = RemotingClient(system_runtime())
    try:
        for queue_id in range(_QUEUES):
            header = UpdateConsumerOffsetRequestHeader(
                consumer_group=GROUP, topic=TOPIC, queue_id=queue_id, commit_offset=1
            )
            command = RemotingCommand(RequestCode.UPDATE_CONSUMER_OFFSET, header)
            (await client.invoke(broker, command, _TIMEOUT)).require_success()
    finally:
        await client.close()


def _heartbeat(client_id: str) -> RemotingCommand:
    data = ConsumerData(
        group_name=GROUP,
        consume_type=ConsumeType.CONSUME_PASSIVELY,
        message_model=MessageModel.CLUSTERING,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        subscription_data_set=[build_subscription_data(TOPIC, "*")],
    )
    body = HeartbeatData(client_id=client_id, consumer_data_set=[data])
    return RemotingCommand(RequestCode.HEART_BEAT, body=body)


def _reset() -> RemotingCommand:
    header = ResetOffsetRequestHeader(topic=TOPIC, group=GROUP, timestamp=0, is_force=True)
    return RemotingCommand(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)
