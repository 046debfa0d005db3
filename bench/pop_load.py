"""POP and ACK from a raw client at one broker of either kind: many consumers over one connection."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from bench.pipelined_client import PipelinedClient
from rewindmq.protocol.body.batch_ack import BatchAck, BatchAckMessageRequestBody
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.frame import FrameDecoder, encode_frame
from rewindmq.protocol.header.pop import (
    AckMessageRequestHeader,
    PopMessageRequestHeader,
    PopMessageResponseHeader,
)
from rewindmq.protocol.header.send import SendMessageRequestHeaderV2
from rewindmq.protocol.pop.bit_set import encode_bits
from rewindmq.protocol.pop.extra_info import ExtraInfo
from rewindmq.protocol.pop.offset_info import parse_msg_offset_info, parse_start_offset_info
from rewindmq.protocol.remoting.address import parse_address
from tools.interop.raw import create_topic

QUEUES: Final = 4
_GROUP: Final = "BenchmarkPopGroup"
_BODY: Final = bytes(100)
_IN_FLIGHT: Final = 256
_INVISIBLE_MS: Final = 60_000
_POLL_MS: Final = 5_000
_SECONDS: Final = 120.0
# Responses without messages: nothing was there, or another POP held the queues.
_EMPTY: Final = (ResponseCode.POLLING_TIMEOUT, ResponseCode.POLLING_FULL, ResponseCode.PULL_NOT_FOUND)


class PopLoadError(Exception):
    """A broker refused a request, or did not hand out all messages."""


@dataclass(frozen=True, slots=True)
class PopLoad:
    """How messages are consumed.

    Attributes:
        consumers: POPs in flight; each acknowledges what it got before it pops again.
        count: the most messages of a POP; with 1, ACK_MESSAGE (200051) is used, else BATCH_ACK_MESSAGE.
    """

    name: str
    consumers: int
    count: int


async def fill(address: str, topic: str, total: int) -> None:
    """Create a topic with four queues, and send ``total`` messages of 100 B."""
    create_topic(address, topic, QUEUES)
    frames = [_send(topic, queue) for queue in range(QUEUES)]
    host, port = parse_address(address)
    loop = asyncio.get_running_loop()
    _, client = await loop.create_connection(lambda: PipelinedClient(frames), host, port)
    try:
        await client.send(_IN_FLIGHT, total)
    finally:
        client.close()


def _send(topic: str, queue: int) -> bytes:
    header = SendMessageRequestHeaderV2(
        producer_group="BenchmarkProducer",
        topic=topic,
        default_topic="TBW102",
        default_topic_queue_nums=QUEUES,
        queue_id=queue,
        sys_flag=0,
        born_timestamp=int(time.time() * 1_000),
        flag=0,
        properties=f"UNIQ_KEY\x01{queue:032X}\x02WAIT\x01true\x02TAGS\x01T\x02",
    )
    return encode_frame(
        RemotingCommand(RequestCode.SEND_MESSAGE_V2, header, _BODY, opaque=queue), SerializeType.JSON
    )


async def consume(address: str, broker_name: str, topic: str, load: PopLoad, total: int) -> float:
    """Pop and acknowledge all messages of a topic; return the seconds.

    Raises:
        PopLoadError: the broker refused a request, or did not hand out all messages within two minutes.
    """
    host, port = parse_address(address)
    loop = asyncio.get_running_loop()
    transport, consumers = await loop.create_connection(
        lambda: _Consumers(broker_name, topic, load, total), host, port
    )
    started = time.perf_counter()
    try:
        async with asyncio.timeout(_SECONDS):
            consumers.begin()
            await consumers.done
    except TimeoutError:
        raise PopLoadError(f"only {consumers.acked} of {total} messages were acknowledged") from None
    finally:
        transport.abort()
    return time.perf_counter() - started


class _Consumers(asyncio.Protocol):
    """Consumers that pop from all queues; the opaque of a request is its consumer's number."""

    def __init__(self, broker_name: str, topic: str, load: PopLoad, total: int) -> None:
        self._broker_name = broker_name
        self._topic = topic
        self._load = load
        self._total = total
        self._decoder = FrameDecoder()
        # How many messages an ack that is in flight acknowledges, and how many acks; by consumer.
        self._acking: dict[int, list[int]] = {}
        self._transport: Any = None
        self.acked = 0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail("the broker has closed the connection")

    def begin(self) -> None:
        """Send the first POP of each consumer."""
        self._transport.write(b"".join(self._pop(number) for number in range(self._load.consumers)))

    def data_received(self, data: bytes) -> None:
        requests: list[bytes] = []
        for response in self._decoder.feed(data):
            if not response.is_response:
                continue
            if response.opaque in self._acking:
                self._acknowledged(response, requests)
            elif response.code == ResponseCode.SUCCESS:
                requests += self._acks(response)
            elif response.code in _EMPTY:
                requests.append(self._pop(response.opaque))
            else:
                self._fail(f"POP_MESSAGE returned {response.code}: {response.remark}")
        if requests:
            self._transport.write(b"".join(requests))

    def _acknowledged(self, response: RemotingCommand, requests: list[bytes]) -> None:
        if response.code != ResponseCode.SUCCESS:
            self._fail(f"an ack returned {response.code}: {response.remark}")
        waiting = self._acking[response.opaque]
        waiting[0] -= 1
        if not waiting[0]:
            self.acked += waiting[1]
            del self._acking[response.opaque]
            if self.acked < self._total:
                requests.append(self._pop(response.opaque))
            elif not self.done.done():
                self.done.set_result(None)

    def _fail(self, text: str) -> None:
        if not self.done.done():
            self.done.set_exception(PopLoadError(text))

    def _pop(self, number: int) -> bytes:
        header = PopMessageRequestHeader(
            consumer_group=_GROUP,
            topic=self._topic,
            queue_id=-1,
            max_msg_nums=self._load.count,
            invisible_time=_INVISIBLE_MS,
            poll_time=_POLL_MS,
            born_time=int(time.time() * 1_000),
            init_mode=0,
            exp_type="TAG",
            exp="*",
        )
        return encode_frame(
            RemotingCommand(RequestCode.POP_MESSAGE, header, opaque=number), SerializeType.JSON
        )

    def _acks(self, response: RemotingCommand) -> Iterator[bytes]:
        popped = response.decode_header(PopMessageResponseHeader)
        starts = parse_start_offset_info(popped.start_offset_info)
        offsets = parse_msg_offset_info(popped.msg_offset_info)
        count = sum(map(len, offsets.values()))
        if self._load.count > 1:
            self._acking[response.opaque] = [1, count]
            acks = [
                BatchAck(
                    encode_bits(offset - starts[kind, queue] for offset in found),
                    _GROUP,
                    popped.invisible_time,
                    popped.pop_time,
                    queue,
                    kind,
                    popped.revive_qid,
                    starts[kind, queue],
                    self._topic,
                )
                for (kind, queue), found in offsets.items()
            ]
            body = BatchAckMessageRequestBody(acks, self._broker_name)
            yield encode_frame(
                RemotingCommand(RequestCode.BATCH_ACK_MESSAGE, body=body, opaque=response.opaque),
                SerializeType.JSON,
            )
            return
        self._acking[response.opaque] = [count, count]
        for (kind, queue), found in offsets.items():
            for offset in found:
                handle = ExtraInfo(
                    starts[kind, queue],
                    popped.pop_time,
                    popped.invisible_time,
                    popped.revive_qid,
                    kind,
                    self._broker_name,
                    queue,
                    offset,
                ).text()
                header = AckMessageRequestHeader(_GROUP, self._topic, queue, handle, offset)
                yield encode_frame(
                    RemotingCommand(RequestCode.ACK_MESSAGE, header, opaque=response.opaque),
                    SerializeType.JSON,
                )
