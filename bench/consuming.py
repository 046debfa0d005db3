"""Push consumption of a backlog, pulled in batches of 32 and delivered to an async listener."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from rewindmq import (
    ConsumeConcurrentlyStatus,
    ConsumeFromWhere,
    Message,
    MessageExt,
    Producer,
    PushConsumer,
)

_BODY_BYTES = 100
_BATCH = 64
_PULL_BATCH = 32


async def fill(namesrv: str, topic: str, total: int, body_bytes: int = _BODY_BYTES) -> None:
    """Send a backlog of at least ``total`` messages."""
    body = bytes(body_bytes)
    async with Producer("BenchmarkProducer", namesrv) as producer:
        await producer.send(Message(topic, body, "TagA"))
        for _ in range(-(-total // _BATCH)):
            await producer.send_batch([Message(topic, body, "TagA") for _ in range(_BATCH)])


async def consumed(namesrv: str, topic: str, group: str, total: int, body_bytes: int = _BODY_BYTES) -> float:
    """Return messages per second from the first to the ``total``-th; the listener touches each body."""
    done = asyncio.Event()
    received = 0
    touched = 0
    first_at = 0.0
    last_at = 0.0

    async def listener(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        nonlocal received, touched, first_at, last_at
        if not received:
            first_at = time.perf_counter()
        received += len(messages)
        for message in messages:
            touched += len(message.body)
        if received >= total and not done.is_set():
            last_at = time.perf_counter()
            done.set()
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    consumer = PushConsumer(
        group,
        namesrv,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        pull_batch_size=_PULL_BATCH,
        consume_message_batch_max_size=_PULL_BATCH,
    )
    consumer.subscribe(topic, "*")
    consumer.register_message_listener(listener)
    async with consumer:
        await done.wait()
    assert touched >= total * body_bytes
    return received / (last_at - first_at)
