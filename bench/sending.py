"""Sends from a producer to one broker process: pipelined, one at a time, in batches."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from rewindmq import Message, Producer
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.frame import encode_frame
from rewindmq.protocol.header.send import SendMessageRequestHeaderV2

TOPIC = "BenchmarkTopic"
_MESSAGE_BYTES = 1024
_BATCH = 64
_BATCH_MESSAGE_BYTES = 100
_BATCHES_IN_FLIGHT = 16


def frame_bytes() -> int:
    """Return the length of a frame with one 1 KiB message, for an echo of the same bytes."""
    message = Message(TOPIC, bytes(_MESSAGE_BYTES), "TagA")
    properties = "\x02".join(f"{name}\x01{value}" for name, value in message.properties.items())
    header = SendMessageRequestHeaderV2(
        producer_group="BenchmarkProducer",
        topic=TOPIC,
        default_topic="TBW102",
        default_topic_queue_nums=4,
        queue_id=0,
        sys_flag=0,
        born_timestamp=1_700_000_000_000,
        flag=0,
        properties=properties + "\x02UNIQ_KEY\x01" + "0" * 32,
    )
    command = RemotingCommand(RequestCode.SEND_MESSAGE_V2, header, message.body, opaque=100_000)
    return len(encode_frame(command, SerializeType.MSGPACK))


async def pipelined(namesrv: str, in_flight: int, total: int) -> float:
    """Return messages per second with ``in_flight`` sends awaited at any time over one connection."""
    body = bytes(_MESSAGE_BYTES)
    async with Producer("BenchmarkProducer", namesrv) as producer:
        await producer.send(Message(TOPIC, body, "TagA"))
        share = total // in_flight

        async def caller() -> None:
            for _ in range(share):
                await producer.send(Message(TOPIC, body, "TagA"))

        started = time.perf_counter()
        await asyncio.gather(*(caller() for _ in range(in_flight)))
        return share * in_flight / (time.perf_counter() - started)


async def batched(namesrv: str, total: int) -> float:
    """Return messages per second in batches of 64 messages of 100 B, with 16 batches in flight."""
    body = bytes(_BATCH_MESSAGE_BYTES)
    async with Producer("BenchmarkProducer", namesrv) as producer:
        await producer.send(Message(TOPIC, body))
        share = total // (_BATCH * _BATCHES_IN_FLIGHT)

        def batch() -> Sequence[Message]:
            return [Message(TOPIC, body) for _ in range(_BATCH)]

        async def caller() -> None:
            for _ in range(share):
                await producer.send_batch(batch())

        started = time.perf_counter()
        await asyncio.gather(*(caller() for _ in range(_BATCHES_IN_FLIGHT)))
        return share * _BATCHES_IN_FLIGHT * _BATCH / (time.perf_counter() - started)
