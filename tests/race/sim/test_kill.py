"""Killed hosts: their code stops, their peers' connections are reset, their files stay."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from rewindmq.broker.broker import Broker
from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.store.config import StoreConfig
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.errors import ConnectError, ConnectionLostError
from rewindmq.protocol.header.offset import (
    QueryConsumerOffsetRequestHeader,
    QueryConsumerOffsetResponseHeader,
    UpdateConsumerOffsetRequestHeader,
)
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.server import RemotingServer
from rewindmq.race.sim import HostKilledError, SimDisk, World

PORT = 10_911


async def tick(world: World, host: str, ticks: list[float]) -> None:
    timers = world.runtime(host).timers

    def fire() -> None:
        ticks.append(world.now)
        timers.call_later(1.0, fire)

    fire()
    try:
        while True:
            await timers.sleep(1.0)
            ticks.append(-world.now)
    finally:
        # Must not run at the kill, and must do no harm when the world ends.
        await timers.sleep(1.0)
        ticks.append(1e9)


def test_no_code_of_a_killed_host_runs_again() -> None:
    world = World()
    ticks: list[float] = []
    other: list[float] = []

    async def main() -> None:
        world.spawn("a", tick(world, "a", ticks))
        world.spawn("b", tick(world, "b", other))
        await world.sleep(2.5)
        world.kill("a")
        heard = list(ticks)
        assert len(heard) == 5
        await world.sleep(10)
        assert ticks == heard
        assert len(other) > 20

    world.run(main())
    assert 1e9 not in ticks


def test_a_paused_host_runs_its_timers_when_it_resumes() -> None:
    world = World()
    ticks: list[float] = []

    async def main() -> None:
        world.spawn("a", tick(world, "a", ticks))
        await world.sleep(1.5)
        world.pause("a")
        world.pause("a")
        heard = list(ticks)
        await world.sleep(8)
        assert ticks == heard
        world.resume("a")
        await world.sleep(0.2)
        assert ticks == [*heard, 9.5, -9.5]
        world.pause("never seen")
        world.resume("never seen")

    world.run(main())


def test_a_paused_host_answers_when_it_resumes() -> None:
    world = World()
    log: list[str] = []

    async def main() -> None:
        await world.spawn("a", serve(world, "a", log))
        client = RemotingClient(world.runtime("b"), serialize_type=SerializeType.JSON)
        asking = asyncio.ensure_future(client.invoke(f"a:{PORT}", RemotingCommand(10), timeout=60))
        await world.sleep(1)
        assert log == ["a asked"]
        world.pause("a")
        await world.sleep(20)
        assert log == ["a asked"]
        assert not asking.done()
        world.resume("a")
        assert (await asking).code == 0
        assert 21.0 <= world.now < 22.0
        await client.close()

    world.run(main())


def test_awaiting_work_of_a_killed_host_raises() -> None:
    world = World()

    async def main() -> None:
        waiting = world.spawn("a", world.sleep(100))
        asyncio.get_running_loop().call_later(1, world.kill, "a")
        with pytest.raises(HostKilledError, match="host a was killed"):
            await waiting
        assert world.now == 1.0
        world.kill("a")
        world.kill("never seen")

    world.run(main())


def test_spawned_work_gives_its_result_and_its_error() -> None:
    world = World()

    async def work(error: Exception | None) -> str:
        await world.sleep(1)
        if error is not None:
            raise error
        return "done"

    async def main() -> None:
        assert await world.spawn("a", work(None)) == "done"
        with pytest.raises(ZeroDivisionError):
            await world.spawn("a", work(ZeroDivisionError()))
        cancelled = world.spawn("a", world.sleep(1e9))
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled

    world.run(main())


async def serve(world: World, host: str, log: list[str]) -> RemotingServer:
    async def answer(connection: Connection, request: RemotingCommand) -> RemotingCommand:
        log.append(f"{host} asked")
        await world.sleep(5)
        log.append(f"{host} answers")
        return RemotingCommand(0)

    server = RemotingServer(
        world.runtime(host), {10: answer}, on_close=lambda *_: log.append(f"{host} lost one")
    )
    await server.start("0.0.0.0", PORT)
    return server


def test_the_peers_of_a_killed_host_are_reset_and_can_reconnect() -> None:
    world = World(latency=(0.25, 0.25))
    log: list[str] = []

    async def main() -> None:
        await world.spawn("server", serve(world, "server", log))
        client = RemotingClient(world.runtime("client"), serialize_type=SerializeType.JSON)
        asking = client.invoke(f"server:{PORT}", RemotingCommand(10), timeout=60)
        await world.sleep(2)
        assert log == ["server asked"]
        world.kill("server")
        with pytest.raises(ConnectionLostError):
            await asking
        assert world.now == 2.25
        refused = client.invoke(f"server:{PORT}", RemotingCommand(10))
        with pytest.raises(ConnectError):
            await refused
        # The restarted host listens on the same port.
        await world.spawn("server", serve(world, "server", log))
        assert (await client.invoke(f"server:{PORT}", RemotingCommand(10), timeout=60)).code == 0
        assert log == ["server asked", "server asked", "server answers"]
        await client.close()

    world.run(main())


def test_the_server_of_a_killed_client_sees_one_lost_connection() -> None:
    world = World()
    log: list[str] = []

    async def ask() -> None:
        client = RemotingClient(world.runtime("client"), serialize_type=SerializeType.JSON)
        await client.invoke(f"server:{PORT}", RemotingCommand(10), timeout=60)
        log.append("client has it")

    async def main() -> None:
        await world.spawn("server", serve(world, "server", log))
        world.spawn("client", ask())
        await world.sleep(2)
        world.kill("client")
        await world.sleep(20)

    world.run(main())
    assert log == ["server asked", "server lost one"]


def test_severed_ends_both_see_a_reset_and_may_connect_again() -> None:
    world = World()
    log: list[str] = []

    async def main() -> None:
        await world.spawn("server", serve(world, "server", log))
        client = RemotingClient(world.runtime("client"), serialize_type=SerializeType.JSON)
        asking = client.invoke(f"server:{PORT}", RemotingCommand(10), timeout=60)
        await world.sleep(2)
        world.sever("client", "server")
        with pytest.raises(ConnectionLostError):
            await asking
        await world.sleep(1)
        assert log == ["server asked", "server lost one"]
        assert (await client.invoke(f"server:{PORT}", RemotingCommand(10), timeout=60)).code == 0
        await client.close()

    world.run(main())


# The broker on a simulated disk.


def broker(world: World) -> Broker:
    store = StoreConfig(mapped_file_size_commit_log=1 << 16, mapped_file_size_consume_queue=6_000)
    config = BrokerConfig(
        bind_address="broker",
        broker_ip1="10.0.0.9",
        listen_port=PORT,
        store_path_root_dir="/store",
        store=store,
    )
    return Broker(world.runtime("broker"), config, world.disk("broker"))


def commit(offset: int) -> RemotingCommand:
    header = UpdateConsumerOffsetRequestHeader("G", "T", 0, offset)
    return RemotingCommand(RequestCode.UPDATE_CONSUMER_OFFSET, header)


QUERY = RemotingCommand(RequestCode.QUERY_CONSUMER_OFFSET, QueryConsumerOffsetRequestHeader("G", "T", 0))


@pytest.mark.parametrize(("seconds", "offset"), [(6.0, 7), (0.1, 3)])
def test_a_restarted_broker_reads_the_offsets_it_had_written(seconds: float, offset: int) -> None:
    """Offsets are written every 5 s; a killed process loses later ones."""
    world = World()

    async def main() -> None:
        await world.spawn("broker", broker(world).start())
        client = RemotingClient(world.runtime("client"), serialize_type=SerializeType.JSON)
        address = f"broker:{PORT}"
        await client.invoke(address, commit(3))
        await world.sleep(20)
        await client.invoke(address, commit(7))
        await world.sleep(seconds)
        world.kill("broker")
        await world.sleep(1)
        again = broker(world)
        await world.spawn("broker", again.start())
        answer = await client.invoke(address, QUERY)
        assert answer.decode_header(QueryConsumerOffsetResponseHeader).offset == offset
        await client.close()
        await world.spawn("broker", again.close())

    world.run(main())
    assert Path("/store/config/consumerOffset.json") in world.disk("broker").files()
    assert not Path("/store").exists()


def test_two_brokers_cannot_share_a_disk_but_one_after_the_other_can() -> None:
    world = World()

    async def main() -> None:
        disk = world.disk("broker")
        unlock = disk.lock(Path("/store/lock"))
        with pytest.raises(Exception, match="in use by another broker"):
            disk.lock(Path("/store/lock"))
        unlock()
        disk.lock(Path("/store/lock"))
        world.runtime("broker")
        world.kill("broker")
        disk.lock(Path("/store/lock"))

    world.run(main())


def test_synced_content_survives_a_power_failure() -> None:
    disk = SimDisk(lambda: 0, remembers_synced=True)
    path = Path("/store/file")
    disk.create(path, 8)
    mapping = disk.map(path, 8)
    mapping[:4] = b"safe"
    disk.sync(path)
    mapping[4:] = b"gone"
    assert disk.read(path) == b"safegone"
    disk.lose_power()
    assert disk.read(path) == b"safe\0\0\0\0"
    assert disk.map(path, 8)[:4] == b"safe"
