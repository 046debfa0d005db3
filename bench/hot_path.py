"""Processor time of the broker's own code for a request of the Java client, without a socket.

The broker runs in this process with a real store. Its connection gets prepared reads, and its responses are
discarded.
"""

from __future__ import annotations

import asyncio
import gc
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import Final

import uvloop

from rewindmq.broker.broker import Broker
from rewindmq.broker.config import BrokerConfig
from rewindmq.protocol.body.heartbeat import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
)
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.frame import FrameDecoder, encode_frame
from rewindmq.protocol.header.pull import PullMessageRequestHeader
from rewindmq.protocol.header.send import SendMessageRequestHeaderV2
from rewindmq.protocol.message import Message
from rewindmq.protocol.message.batch import encode_batch
from rewindmq.protocol.message.properties import format_properties
from rewindmq.protocol.message.sysflag import PullSysFlag
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.process.collector import tune_collector
from rewindmq.protocol.remoting.process.stall_watch import watch_stalls
from rewindmq.protocol.remoting.runtime import Listener, TcpNetwork, system_runtime
from rewindmq.protocol.remoting.speedups import SpeedupsModule
from rewindmq.protocol.subscription import build_subscription_data
from rewindmq.protocol.version import LanguageCode

_TOPIC: Final = "HotPathTopic"
_GROUP: Final = "HotPathGroup"
_QUEUES: Final = 4
_BATCH: Final = 64
_PULLED: Final = 32
_BACKLOG_BATCHES: Final = 80
_BORN_MS: Final = 1_795_323_546_451
_RUNS_OF_WARM_UP: Final = 5
_PEER: Final = ("127.0.0.1", 50_001)


def _frame(command: RemotingCommand) -> bytes:
    command.language = LanguageCode.JAVA
    return encode_frame(command, SerializeType.JSON)


def _properties(number: int) -> dict[str, str]:
    unique = f"FD00000000000000000000000000000265E34E0E2F2A6D3763{number:06X}"
    return {"UNIQ_KEY": unique, "WAIT": "true", "TAGS": "TagA"}


def _send(code: RequestCode, properties: dict[str, str], body: bytes, number: int) -> bytes:
    header = SendMessageRequestHeaderV2(
        producer_group="HotPathProducer",
        topic=_TOPIC,
        default_topic="TBW102",
        default_topic_queue_nums=_QUEUES,
        queue_id=number % _QUEUES,
        sys_flag=0,
        born_timestamp=_BORN_MS + number,
        flag=0,
        properties=format_properties(properties),
        reconsume_times=0,
        batch=code == RequestCode.SEND_BATCH_MESSAGE,
        broker_name="broker-a",
    )
    return _frame(RemotingCommand(code, header, body, opaque=number))


def one_message(size: int, number: int) -> bytes:
    """Return the frame of a send."""
    return _send(RequestCode.SEND_MESSAGE_V2, _properties(number), bytes(size), number)


def _sends(size: int, in_a_read: int, reads: int) -> Iterator[bytes]:
    for first in range(0, in_a_read * reads, in_a_read):
        yield b"".join(one_message(size, first + number) for number in range(in_a_read))


def _batches(reads: int) -> Iterator[bytes]:
    for number in range(reads):
        ids = range(number * _BATCH, (number + 1) * _BATCH)
        body = encode_batch([Message(_TOPIC, bytes(100), properties=_properties(each)) for each in ids])
        yield _send(RequestCode.SEND_BATCH_MESSAGE, {"WAIT": "true"}, body, number)


def _pulls(reads: int) -> Iterator[bytes]:
    """Yield pulls of a push consumer, whose heartbeat has registered its subscription."""
    in_queue = _BACKLOG_BATCHES // _QUEUES * _BATCH
    for number in range(reads):
        offset = number // _QUEUES * _PULLED % in_queue
        header = PullMessageRequestHeader(
            consumer_group=_GROUP,
            topic=_TOPIC,
            queue_id=number % _QUEUES,
            queue_offset=offset,
            max_msg_nums=_PULLED,
            sys_flag=PullSysFlag.COMMIT_OFFSET | PullSysFlag.SUSPEND,
            commit_offset=in_queue,
            suspend_timeout_millis=15_000,
            sub_version=0,
            expression_type="TAG",
        )
        yield _frame(RemotingCommand(RequestCode.PULL_MESSAGE, header, opaque=number))


def _heartbeat() -> bytes:
    consumer = ConsumerData(
        group_name=_GROUP,
        consume_type=ConsumeType.CONSUME_PASSIVELY,
        message_model=MessageModel.CLUSTERING,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        subscription_data_set=[build_subscription_data(_TOPIC, "*")],
    )
    body = HeartbeatData(client_id="127.0.0.1@1", consumer_data_set=[consumer])
    return _frame(RemotingCommand(RequestCode.HEART_BEAT, body=body))


@dataclass(frozen=True)
class HotPathLoad:
    """A sequence of reads for the broker's connection.

    Attributes:
        item: the thing that the time is divided by: a message or a pull.
        in_a_read: number of items in one read.
    """

    title: str
    item: str
    in_a_read: int
    make_reads: Callable[[], Iterator[bytes]]
    is_accelerated: bool = False


LOADS: Final = (
    HotPathLoad("SEND_MESSAGE_V2, 100 B, 16 in a read", "message", 16, lambda: _sends(100, 16, 60), True),
    HotPathLoad("SEND_MESSAGE_V2, 1 KiB, 16 in a read", "message", 16, lambda: _sends(1_024, 16, 40), True),
    HotPathLoad("SEND_MESSAGE_V2, 100 B, 1 in a read", "message", 1, lambda: _sends(100, 1, 900), True),
    HotPathLoad("SEND_BATCH_MESSAGE, 64 x 100 B", "message", _BATCH, lambda: _batches(40), True),
    HotPathLoad("PULL_MESSAGE, 32 messages of 100 B", "pull", 1, lambda: _pulls(500), True),
)


class _RecordingNetwork(TcpNetwork):
    """Records the connection factories by port, so that a connection can be made without a socket."""

    def __init__(self) -> None:
        self.factories: dict[int, Callable[[], asyncio.Protocol]] = {}

    async def listen(self, factory: Callable[[], asyncio.Protocol], host: str, port: int) -> Listener:
        listener = await super().listen(factory, host, port)
        self.factories[listener.port] = factory
        return listener


class _Sink(asyncio.Transport):
    """A transport without a socket, which collects what the broker writes and never exerts back pressure."""

    def __init__(self) -> None:
        super().__init__({"peername": _PEER, "sockname": _PEER})
        self.written: list[bytes] = []
        self._wrote = asyncio.Event()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))
        self._wrote.set()

    def is_closing(self) -> bool:
        return False

    def abort(self) -> None:
        pass

    close = abort

    def take_answers(self) -> int:
        """Return the number of responses since the last call.

        Raises:
            AssertionError: the broker refused a request.
        """
        answers = [answer for answer in FrameDecoder().feed(b"".join(self.written)) if answer.is_response]
        self.written.clear()
        refusals = {f"{each.code}: {each.remark}" for each in answers if each.code != ResponseCode.SUCCESS}
        assert not refusals, f"the broker refused requests of the benchmark: {refusals}"
        return len(answers)

    async def wait_answers(self, count: int) -> None:
        """Wait for a number of responses: to create a topic, the broker waits for its disk."""
        while True:
            self._wrote.clear()
            count -= self.take_answers()
            if count <= 0:
                return
            await self._wrote.wait()


@contextmanager
def _tuned_collector() -> Iterator[None]:
    before = gc.get_threshold()
    tune_collector()
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def microseconds(
    load: HotPathLoad, runs: int, speedups: SpeedupsModule | None = None, profile: Profile = Profile.V49
) -> float:
    """Return the processor time for one item, user and system, in the fastest of ``runs`` runs.

    Args:
        speedups: the native kernels; None measures pure Python.
        profile: of the broker.
    """
    return uvloop.run(_least_microseconds(load, runs, speedups, profile))


async def _least_microseconds(
    load: HotPathLoad, runs: int, speedups: SpeedupsModule | None, profile: Profile
) -> float:
    async with _prepared(load, speedups, profile) as run:
        return min([await run() for _ in range(runs)])


@asynccontextmanager
async def _prepared(
    load: HotPathLoad, speedups: SpeedupsModule | None, profile: Profile
) -> AsyncIterator[Callable[[], Awaitable[float]]]:
    """Start a broker with a backlog, and warm it up with the load.

    Returns:
        A function that passes the load to the broker and returns the microseconds for one item.
    """
    network = _RecordingNetwork()
    runtime = replace(system_runtime(), network=network, speedups=speedups)
    with (
        tempfile.TemporaryDirectory(prefix="rewindmq-bench-") as directory,
        _tuned_collector(),
        watch_stalls(runtime) as watched,
    ):
        config = BrokerConfig(store_path_root_dir=directory, listen_port=0, profile=profile)
        broker = Broker(watched, config)
        await broker.start()
        connection, sink = network.factories[int(broker.address.rpartition(":")[2])](), _Sink()
        connection.connection_made(sink)
        try:
            yield await _warmed_up(connection, sink, load)
        finally:
            # The sink does not end the connection, for which the broker would wait.
            connection.connection_lost(None)
            await broker.close()
            watched.workers.close()


async def _warmed_up(
    connection: asyncio.Protocol, sink: _Sink, load: HotPathLoad
) -> Callable[[], Awaitable[float]]:
    reads = list(load.make_reads())
    receive = connection.data_received
    for read in (_heartbeat(), *_batches(_BACKLOG_BATCHES)):
        receive(read)
    await sink.wait_answers(1 + _BACKLOG_BATCHES)
    requests = sum(len(FrameDecoder().feed(read)) for read in reads)
    for _ in range(_RUNS_OF_WARM_UP):
        for read in reads:
            receive(read)
        await sink.wait_answers(requests)

    async def run() -> float:
        started = time.process_time_ns()
        for read in reads:
            receive(read)
        nanoseconds = time.process_time_ns() - started
        assert sink.take_answers() == requests, "a response came after the time was taken"
        await asyncio.sleep(0)
        return nanoseconds / len(reads) / load.in_a_read / 1_000

    return run
