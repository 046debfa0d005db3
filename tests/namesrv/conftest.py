"""A name server on a stage: under virtual time, or on real sockets."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from rewindmq.namesrv.config import NamesrvConfig
from rewindmq.namesrv.server import NameServer
from rewindmq.protocol.body.cluster import ClusterInfo
from rewindmq.protocol.body.registration import (
    DataVersion,
    RegisterBrokerBody,
    TopicConfig,
    TopicConfigSerializeWrapper,
)
from rewindmq.protocol.body.route import TopicRouteData
from rewindmq.protocol.body_codec import decode_body, encode_body
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import CommandHeader, RemotingCommand, SerializeType
from rewindmq.protocol.header.namesrv import GetRouteInfoRequestHeader, RegisterBrokerRequestHeader
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.runtime import Runtime, system_runtime
from rewindmq.race.sim import World

NEVER = 1e9


class Peer:
    """Somebody connected to the name server."""

    def __init__(self, runtime: Runtime, namesrv_address: str) -> None:
        # Its own idle timer must not be what closes the connection.
        self.client = RemotingClient(runtime, idle_seconds=NEVER)
        self.namesrv_address = namesrv_address

    async def ask(self, code: int, header: CommandHeader | None = None, body: Any = None) -> RemotingCommand:
        return await self.client.invoke(self.namesrv_address, RemotingCommand(code, header, body))

    async def register(
        self,
        address: str = "10.0.0.2:10911",
        *,
        name: str = "broker-a",
        broker_id: int = 0,
        cluster: str = "DefaultCluster",
        topics: tuple[str, ...] = ("T", "TBW102"),
        version: tuple[int, int] = (1, 1),
        queues: int = 4,
        crc: int | None = None,
        ha_address: str = "",
        expiry_ms: int | None = None,
        configs: tuple[TopicConfig, ...] = (),
    ) -> RemotingCommand:
        table = {
            topic: TopicConfig(topic_name=topic, read_queue_nums=queues, write_queue_nums=queues)
            for topic in topics
        }
        table.update((config.topic_name, config) for config in configs)
        wrapper = TopicConfigSerializeWrapper(
            topic_config_table=table, data_version=DataVersion(timestamp=version[0], counter=version[1])
        )
        body = encode_body(RegisterBrokerBody(topic_config_serialize_wrapper=wrapper), SerializeType.MSGPACK)
        header = RegisterBrokerRequestHeader(
            broker_name=name,
            broker_addr=address,
            cluster_name=cluster,
            ha_server_addr=ha_address,
            broker_id=broker_id,
            body_crc32=zlib.crc32(body) & 0x7FFFFFFF if crc is None else crc,
            heartbeat_timeout_millis=expiry_ms,
        )
        return await self.ask(RequestCode.REGISTER_BROKER, header, body)

    async def find_route(self, topic: str = "T") -> RemotingCommand:
        return await self.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequestHeader(topic=topic))

    async def route(self, topic: str = "T") -> TopicRouteData:
        return decode_body((await self.find_route(topic)).require_success(), TopicRouteData)

    async def cluster_info(self) -> ClusterInfo:
        answer = await self.ask(RequestCode.GET_BROKER_CLUSTER_INFO)
        return decode_body(answer.require_success(), ClusterInfo)


@dataclass
class Stage:
    """A name server, a broker's connection to it and a client's."""

    namesrv: NameServer
    broker: Peer
    client: Peer
    runtime: Runtime

    async def at(self, seconds: float) -> None:
        """Let protocol time pass until so many seconds after the start."""
        await self.runtime.timers.sleep(seconds - self.runtime.clock.monotonic())


Scenario = Callable[[Stage], Awaitable[None]]


@pytest.fixture
def simulate() -> Callable[..., None]:
    """``simulate(scenario, **config)`` runs a scenario under virtual time, from second 0."""

    def run(scenario: Scenario, **config: Any) -> None:
        world = World(latency=(0.0, 0.0))

        async def main() -> None:
            namesrv = NameServer(world.runtime("10.0.0.1"), NamesrvConfig(bind_address="0.0.0.0", **config))
            await namesrv.start()
            broker, client = (Peer(world.runtime(host), "10.0.0.1:9876") for host in ("10.0.0.2", "10.0.0.3"))
            try:
                await scenario(Stage(namesrv, broker, client, world.runtime("10.0.0.4")))
            finally:
                await broker.client.close()
                await client.client.close()
                await namesrv.close()

        world.run(main())

    return run


@pytest.fixture
async def real_stage() -> AsyncIterator[Stage]:
    """The same on real sockets."""
    runtime = system_runtime()
    namesrv = NameServer(runtime, NamesrvConfig(listen_port=0))
    await namesrv.start()
    broker, client = Peer(runtime, namesrv.address), Peer(runtime, namesrv.address)
    yield Stage(namesrv, broker, client, runtime)
    await broker.client.close()
    await client.client.close()
    await namesrv.close()
    runtime.workers.close()
