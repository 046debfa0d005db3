"""Timer messages from a raw client to one broker of either kind: sent ahead, counted when they arrive."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Sequence
from typing import Final

from bench.pipelined_client import PipelinedClient
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import CommandHeader, RemotingCommand, SerializeType
from rewindmq.protocol.frame import FrameDecoder, encode_frame
from rewindmq.protocol.header.offset import GetMaxOffsetRequestHeader
from rewindmq.protocol.header.pull import PullMessageRequestHeader
from rewindmq.protocol.header.send import SendMessageRequestHeaderV2
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message.record import decode_records
from rewindmq.protocol.names import TIMER_TOPIC
from rewindmq.protocol.remoting.address import parse_address
from tools.interop.raw import create_topic

QUEUES: Final = 4
_BODY: Final = bytes(100)
_IN_FLIGHT: Final = 256
# Different frames; they are sent again and again.
_FRAMES: Final = 1_000
_PORTION: Final = 50_000
_POLL_SECONDS: Final = 0.01
_SECONDS: Final = 300.0
_CHUNK: Final = 1 << 16
_TABLE_SECONDS: Final = 1.0
_PULL: Final = 32
_WITH_SUBSCRIPTION: Final = 4


class TimerLoadError(Exception):
    """A broker did not store or deliver the timer messages that it was sent."""


class TimerTopic:
    """A new topic with four queues at a broker, whose messages come from timers only.

    Args:
        address: the broker's.
    """

    def __init__(self, address: str, name: str) -> None:
        self.name = name
        self._address = address
        self._decoder = FrameDecoder()
        create_topic(address, name, QUEUES)
        self._connection = socket.create_connection(parse_address(address), _SECONDS)

    def close(self) -> None:
        self._connection.close()

    async def send(self, due_ms: Sequence[int], total: int) -> None:
        """Send ``total`` messages of 100 B over one connection, 256 in flight.

        Args:
            due_ms: the times at which they are due, in turn.

        Raises:
            TimerLoadError: the broker has stored fewer timer messages.
        """
        before = self._max_offset(TIMER_TOPIC, 0)
        frames = [
            self._frame(number, due_ms[number % len(due_ms)])
            for number in range(min(total, max(_FRAMES, len(due_ms))))
        ]
        host, port = parse_address(self._address)
        loop = asyncio.get_running_loop()
        _, client = await loop.create_connection(lambda: PipelinedClient(frames), host, port)
        try:
            for sent in range(0, total, _PORTION):
                await client.send(_IN_FLIGHT, min(_PORTION, total - sent))
                # Brokers close connections that are idle for two minutes.
                self._max_offset(TIMER_TOPIC, 0)
        finally:
            client.close()
        deadline = time.monotonic() + _SECONDS
        # RocketMQ dispatches from another thread.
        while (stored := self._max_offset(TIMER_TOPIC, 0) - before) < total:
            if time.monotonic() > deadline:
                raise TimerLoadError(f"only {stored} of {total} timer messages were stored")
            await asyncio.sleep(_POLL_SECONDS)

    def _frame(self, number: int, due_ms: int) -> bytes:
        header = SendMessageRequestHeaderV2(
            producer_group="BenchmarkProducer",
            topic=self.name,
            default_topic="TBW102",
            default_topic_queue_nums=QUEUES,
            queue_id=number % QUEUES,
            sys_flag=0,
            born_timestamp=int(time.time() * 1_000),
            flag=0,
            properties=f"TIMER_DELIVER_MS\x01{due_ms}\x02UNIQ_KEY\x01{number:032X}\x02WAIT\x01true\x02TAGS\x01T\x02",
        )
        command = RemotingCommand(RequestCode.SEND_MESSAGE_V2, header, _BODY, opaque=number)
        return encode_frame(command, SerializeType.JSON)

    @property
    def delivered(self) -> int:
        """The number of messages that consumers can see."""
        return sum(self._max_offset(self.name, queue) for queue in range(QUEUES))

    async def wait_delivered(self, total: int) -> None:
        """Return when consumers can see ``total`` messages; a question each 10 ms.

        Raises:
            TimerLoadError: it takes more than five minutes.
        """
        deadline = time.monotonic() + _SECONDS
        while (delivered := self.delivered) < total:
            if time.monotonic() > deadline:
                raise TimerLoadError(f"only {delivered} of {total} timer messages were delivered")
            await asyncio.sleep(_POLL_SECONDS)

    async def wait_taken(self, total: int) -> None:
        """Return when ``total`` messages are in the broker's timer wheel, by its runtime information.

        Raises:
            TimerLoadError: it takes more than five minutes.
        """
        deadline = time.monotonic() + _SECONDS
        while (taken := self._taken()) < total:
            if time.monotonic() > deadline:
                raise TimerLoadError(f"only {taken} of {total} timer messages are in the wheel")
            await asyncio.sleep(_TABLE_SECONDS)

    def _taken(self) -> int:
        body = self._ask(RemotingCommand(RequestCode.GET_BROKER_RUNTIME_INFO)).body
        assert isinstance(body, bytes)
        return int(json.loads(body)["table"]["timerCongestNum"])

    def messages(self) -> list[MessageExt]:
        """Return all messages that are delivered."""
        found: list[MessageExt] = []
        for queue in range(QUEUES):
            offset, end = 0, self._max_offset(self.name, queue)
            while offset < end:
                header = PullMessageRequestHeader(
                    consumer_group="BenchmarkConsumer",
                    topic=self.name,
                    queue_id=queue,
                    queue_offset=offset,
                    max_msg_nums=_PULL,
                    sys_flag=_WITH_SUBSCRIPTION,
                    commit_offset=0,
                    suspend_timeout_millis=0,
                    sub_version=0,
                    subscription="*",
                    expression_type="TAG",
                )
                body = self._ask(RemotingCommand(RequestCode.PULL_MESSAGE, header)).body
                messages = decode_records(body) if isinstance(body, bytes) else []
                if not messages:
                    raise TimerLoadError(f"queue {queue} of {self.name} has no message at {offset}")
                found += messages
                offset += len(messages)
        return found

    def _max_offset(self, topic: str, queue: int) -> int:
        header: CommandHeader = GetMaxOffsetRequestHeader(topic=topic, queue_id=queue)
        return int(str(self._ask(RemotingCommand(RequestCode.GET_MAX_OFFSET, header)).ext["offset"]))

    def _ask(self, command: RemotingCommand) -> RemotingCommand:
        self._connection.sendall(encode_frame(command, SerializeType.JSON))
        while data := self._connection.recv(_CHUNK):
            for answer in self._decoder.feed(data):
                answer.require_success()
                return answer
        raise TimerLoadError(f"{self._address} has closed the connection")
