"""A broker on a stage: under virtual time, or on real sockets."""

from __future__ import annotations

import asyncio
import dataclasses
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from rewindmq.broker.broker import Broker
from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.store.config import StoreConfig
from rewindmq.broker.store.disk import Disk
from rewindmq.namesrv.config import NamesrvConfig
from rewindmq.namesrv.server import NameServer
from rewindmq.protocol.body.heartbeat import ConsumerData, HeartbeatData, MessageModel, ProducerData
from rewindmq.protocol.body.offset_table import ResetOffsetBody
from rewindmq.protocol.body_codec import decode_body
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import CommandHeader, RemotingCommand, SerializeType
from rewindmq.protocol.header.admin import CreateTopicRequestHeader
from rewindmq.protocol.header.offset import (
    QueryConsumerOffsetRequestHeader,
    QueryConsumerOffsetResponseHeader,
    SearchOffsetRequestHeader,
    UpdateConsumerOffsetRequestHeader,
)
from rewindmq.protocol.header.pull import PullMessageRequestHeader, PullMessageResponseHeader
from rewindmq.protocol.header.reset import ResetOffsetRequestHeader
from rewindmq.protocol.header.send import SendMessageRequestHeaderV2
from rewindmq.protocol.points import Probe
from rewindmq.protocol.properties import format_properties
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.connection import Connection, Handler
from rewindmq.protocol.remoting.runtime import Network, Runtime, system_runtime
from rewindmq.protocol.subscription import build_subscription_data
from rewindmq.protocol.sysflag import PullSysFlag
from rewindmq.protocol.version import CURRENT_VERSION, LanguageCode
from rewindmq.race.sim import World
from rewindmq.race.sim.world import EPOCH_MS

NEVER = 1e9
LOG_BYTES = 1 << 20
# Of the machine the broker believes to run on; 40 % of it is far more than any test stores.
MEMORY_BYTES = 1 << 30


class Peer:
    """Somebody connected to the broker: asks, and keeps what the broker sends by itself.

    Attributes:
        received: the requests of the broker with the second they came at.
    """

    def __init__(
        self,
        runtime: Runtime,
        address: str,
        *,
        wire: SerializeType | None = None,
        client_id: str = "c1",
        version: int = CURRENT_VERSION,
        language: LanguageCode = LanguageCode.JAVA,
        answers: Mapping[int, Handler] = MappingProxyType({}),
    ) -> None:
        kept: dict[int, Handler] = dict.fromkeys((39, 40, 220, RequestCode.NOTIFY_QUEUE_RESET), self._keep)
        handlers = {**kept, **answers}
        # Its own idle timer must not be what closes the connection.
        self.client = RemotingClient(runtime, handlers, wire=wire, idle_seconds=NEVER)
        self.address = address
        self.client_id = client_id
        self.version = version
        self.language = language
        self.received: list[tuple[float, RemotingCommand]] = []
        self._clock = runtime.clock
        self._came = asyncio.Event()

    def _keep(self, connection: Connection, request: RemotingCommand) -> None:
        self.received.append((self._clock.monotonic(), request))
        self._came.set()

    async def hear(self, code: int) -> RemotingCommand:
        """The first request of a code the broker sent, now or within real seconds."""
        async with asyncio.timeout(10):
            while not self.count(code):
                self._came.clear()
                await self._came.wait()
        return next(request for _, request in self.received if request.code == code)

    def count(self, code: int) -> int:
        """How many requests of one code the broker sent."""
        return sum(request.code == code for _, request in self.received)

    async def ask(
        self,
        code: int,
        header: CommandHeader | None = None,
        body: Any = None,
        *,
        timeout: float = NEVER,
        **fields: Any,
    ) -> RemotingCommand:
        command = RemotingCommand(
            code, header, body, version=self.version, language=self.language, ext_fields=fields or None
        )
        return await self.client.invoke(self.address, command, timeout)

    async def send(
        self,
        topic: str = "T",
        body: bytes = b"hello",
        *,
        queue_id: int = 0,
        properties: str | dict[str, str] = "",
        code: int = RequestCode.SEND_MESSAGE_V2,
        **fields: Any,
    ) -> RemotingCommand:
        text = properties if isinstance(properties, str) else format_properties(properties)
        defaults: dict[str, Any] = {
            "producer_group": "PG",
            "default_topic": "TBW102",
            "default_topic_queue_nums": 4,
            "sys_flag": 0,
            "born_timestamp": 1,
            "flag": 0,
        }
        header = SendMessageRequestHeaderV2(
            topic=topic, queue_id=queue_id, properties=text, **{**defaults, **fields}
        )
        return await self.ask(code, header, body)

    async def fill(self, count: int, topic: str = "T", queue_id: int = 0, body: bytes = b"x") -> None:
        for _ in range(count):
            (await self.send(topic, body, queue_id=queue_id)).require_success()

    async def create_topic(self, topic: str = "T", write: int = 4, read: int = 4, perm: int = 6) -> None:
        header = CreateTopicRequestHeader(topic, "TBW102", read, write, perm, "SINGLE_TAG")
        (await self.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, header)).require_success()

    async def heartbeat(
        self,
        group: str = "G",
        topics: Sequence[str] = ("T",),
        *,
        model: MessageModel = MessageModel.CLUSTERING,
        expression: str = "*",
        sub_version: int = 1,
        producers: Sequence[str] = (),
    ) -> RemotingCommand:
        subscriptions = [
            build_subscription_data(topic, expression, sub_version=sub_version) for topic in topics
        ]
        data = HeartbeatData(
            self.client_id,
            [ProducerData(name) for name in producers],
            [ConsumerData(group, message_model=model, subscription_data_set=subscriptions)] if group else [],
        )
        return await self.ask(RequestCode.HEART_BEAT, body=data)

    async def pull(
        self,
        offset: int,
        topic: str = "T",
        *,
        queue_id: int = 0,
        group: str = "G",
        hold_ms: int = 0,
        commit: int | None = None,
        count: int = 32,
        subscription: str | None = "*",
        expression_type: str | None = None,
        sub_version: int = 0,
        epoch: int | None = None,
    ) -> RemotingCommand:
        flags = PullSysFlag.SUSPEND if hold_ms else PullSysFlag(0)
        if commit is not None:
            flags |= PullSysFlag.COMMIT_OFFSET
        if subscription is not None:
            flags |= PullSysFlag.SUBSCRIPTION
        header = PullMessageRequestHeader(
            group,
            topic,
            queue_id,
            offset,
            count,
            int(flags),
            commit or 0,
            hold_ms,
            sub_version,
            subscription,
            expression_type,
            epoch=epoch,
        )
        return await self.ask(RequestCode.PULL_MESSAGE, header)

    async def status(self, offset: int, **options: Any) -> tuple[int, str | None, int]:
        """Code, remark and next offset of a pull."""
        response = await self.pull(offset, **options)
        header = response.decode_header(PullMessageResponseHeader)
        return response.code, response.remark, header.next_begin_offset

    async def commit(
        self, offset: int, topic: str = "T", queue_id: int = 0, group: str = "G", epoch: int | None = None
    ) -> RemotingCommand:
        header = UpdateConsumerOffsetRequestHeader(group, topic, queue_id, offset, epoch)
        return await self.ask(RequestCode.UPDATE_CONSUMER_OFFSET, header)

    async def commit_all(self, offset: int, queues: int = 4, topic: str = "T", group: str = "G") -> None:
        for queue_id in range(queues):
            (await self.commit(offset, topic, queue_id, group)).require_success()

    async def stored(
        self,
        topic: str = "T",
        queue_id: int = 0,
        group: str = "G",
        set_zero_if_not_found: bool | None = None,
    ) -> RemotingCommand:
        header = QueryConsumerOffsetRequestHeader(group, topic, queue_id, set_zero_if_not_found)
        return await self.ask(RequestCode.QUERY_CONSUMER_OFFSET, header)

    async def stored_offset(self, topic: str = "T", queue_id: int = 0, group: str = "G") -> int:
        return int(str((await self.stored(topic, queue_id, group)).require_success().ext["offset"]))

    async def search(self, timestamp: int, boundary: str | None = None, topic: str = "T") -> int:
        header = SearchOffsetRequestHeader(topic, 0, timestamp, boundary)
        return await self.number(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)

    async def number(self, code: int, header: CommandHeader) -> int:
        return int(str((await self.ask(code, header)).require_success().ext["offset"]))

    async def reset(
        self, timestamp: int, topic: str = "T", group: str = "G", force: bool = True, **fields: Any
    ) -> RemotingCommand:
        header = ResetOffsetRequestHeader(topic, group, timestamp, force, **fields)
        return await self.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)

    async def targets(self, timestamp: int, topic: str = "T", **fields: Any) -> dict[int, int]:
        """Queue to offset, as a reset that has to succeed answers."""
        response = await self.reset(timestamp, topic, **fields)
        table = decode_body(response.require_success(), ResetOffsetBody).offset_table
        assert all(queue[:2] == (topic, "broker-a") for queue in table)
        return {queue.queue_id: offset for queue, offset in table.items()}

    async def record(self, queue_id: int = 0, group: str = "G") -> tuple[int, int]:
        """Offset and epoch as 14 answers them."""
        header = (await self.stored("T", queue_id, group)).require_success()
        record = header.decode_header(QueryConsumerOffsetResponseHeader)
        return record.offset, record.epoch or 0


class Stage:
    """Brokers, name servers and peers that are closed when the scenario is over."""

    def __init__(self, make_runtime: Callable[[str], Runtime], root: Path, exits: AsyncExitStack) -> None:
        self._make_runtime = make_runtime
        self._exits = exits
        self._hosts = 1
        self.root = root
        self.runtime = make_runtime("10.0.9.9")
        self.brokers: list[Broker] = []
        self.probe: Probe | None = None
        # What the next broker's connections come from, given what they would come from.
        self.network: Callable[[Network], Network] | None = None

    @property
    def broker(self) -> Broker:
        """The newest."""
        return self.brokers[-1]

    def _next_runtime(self) -> tuple[Runtime, str]:
        self._hosts += 1
        host = f"10.0.0.{self._hosts}"
        runtime = dataclasses.replace(self._make_runtime(host), probe=self.probe)
        if self.network is not None:
            runtime = dataclasses.replace(runtime, network=self.network(runtime.network))
        return runtime, host

    async def start_broker(
        self, store: dict[str, Any] | None = None, disk: Disk | None = None, **fields: Any
    ) -> Broker:
        runtime, host = self._next_runtime()
        config: dict[str, Any] = {
            "broker_name": "broker-a",
            "bind_address": host if isinstance(self, SimStage) else "127.0.0.1",
            "listen_port": 0,
            "store_path_root_dir": str(self.root / "store"),
            **fields,
        }
        store_config = StoreConfig(
            **{
                "mapped_file_size_commit_log": LOG_BYTES,
                "mapped_file_size_consume_queue": 60_000,
                "physical_memory_bytes": MEMORY_BYTES,
                **(store or {}),
            }
        )
        broker = Broker(runtime, BrokerConfig(store=store_config, **config), disk)
        self._exits.push_async_callback(broker.close)
        await broker.start()
        self.brokers.append(broker)
        return broker

    async def start_namesrv(self, **fields: Any) -> NameServer:
        runtime, host = self._next_runtime()
        place = host if isinstance(self, SimStage) else "127.0.0.1"
        namesrv = NameServer(runtime, NamesrvConfig(bind_address=place, listen_port=0, **fields))
        self._exits.push_async_callback(namesrv.close)
        await namesrv.start()
        return namesrv

    def peer(self, client_id: str = "c1", address: str | None = None, **options: Any) -> Peer:
        peer = Peer(self._next_runtime()[0], address or self.broker.address, client_id=client_id, **options)
        self._exits.push_async_callback(peer.client.close)
        return peer


class SimStage(Stage):
    """Under virtual time."""

    async def at(self, seconds: float) -> None:
        """Let protocol time pass until so many seconds after the start."""
        await self.runtime.timers.sleep(seconds - self.runtime.clock.monotonic())

    async def group_at(self, offset: int, queues: int = 1, *, messages: int = 100, **topic: int) -> Peer:
        """A member of G, which stands at ``offset`` in each queue of T, holding messages since second 1."""
        peer = self.peer()
        await peer.create_topic(**{"write": queues, "read": queues, **topic})
        await peer.heartbeat()
        await self.at(1.0)
        for queue_id in range(topic.get("write", queues)):
            await peer.fill(messages, queue_id=queue_id)
        await self.at(2.0)
        await peer.commit_all(offset, queues)
        return peer

    async def at_ms(self, milliseconds: int) -> int:
        """The same in ms; returns the wall clock then."""
        await self.at(milliseconds / 1_000)
        return EPOCH_MS + milliseconds


Scenario = Callable[[SimStage], Awaitable[None]]


@pytest.fixture
def simulate(tmp_path: Path) -> Callable[..., None]:
    """``simulate(scenario, **config)``: one broker, started at second 0 of virtual time."""

    def run(scenario: Scenario, *, start: bool = True, **config: Any) -> None:
        world = World(latency=(0.0, 0.0))

        async def main() -> None:
            root = Path(tempfile.mkdtemp(dir=tmp_path))
            async with AsyncExitStack() as exits:
                stage = SimStage(world.runtime, root, exits)
                if start:
                    await stage.start_broker(**config)
                await scenario(stage)

        world.run(main())

    return run


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    """Real sockets; starts nothing by itself."""
    runtime = system_runtime()
    async with AsyncExitStack() as exits:
        yield Stage(lambda _: runtime, tmp_path, exits)
    runtime.workers.close()
