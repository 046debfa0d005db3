"""The simulated world: virtual time, repeatable schedules, and an ordered network."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.protocol.remoting.server import RemotingServer
from rewindmq.race.sim import DeadlockError, World


class RecordingProtocol(asyncio.Protocol):
    """Records the calls of its transport."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.events: list[tuple[float, Any]] = []
        self.transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.note("made")

    def note(self, event: Any) -> None:
        self.events.append((self._world.now, event))

    def data_received(self, data: bytes) -> None:
        self.note(data)

    def eof_received(self) -> None:
        self.note("eof")

    def pause_writing(self) -> None:
        self.note("pause")

    def resume_writing(self) -> None:
        self.note("resume")

    def connection_lost(self, exc: Exception | None) -> None:
        self.note(("lost", type(exc).__name__))

    def names(self) -> list[Any]:
        return [event for _, event in self.events]


async def join(world: World) -> tuple[RecordingProtocol, RecordingProtocol]:
    """Connect; return the connecting and the accepting end."""
    accepted: list[RecordingProtocol] = []

    def accept() -> RecordingProtocol:
        accepted.append(RecordingProtocol(world))
        return accepted[-1]

    await world.runtime("server").network.listen(accept, "server", 9876)
    dialled = RecordingProtocol(world)
    await world.runtime("client").network.connect(lambda: dialled, "server", 9876)
    return dialled, accepted[0]


async def chatter(world: World, trace: list[tuple[float, str]]) -> None:
    """Run two clients of one server, with random requests and waits."""
    server_runtime = world.runtime("server")

    async def think(connection: Connection, request: RemotingCommand) -> RemotingCommand:
        trace.append((world.now, f"think about {request.body!r}"))
        await server_runtime.timers.sleep(server_runtime.random.random())
        return RemotingCommand(0, body=request.body)

    server = RemotingServer(server_runtime, {10: think})
    await server.start("0.0.0.0", 0)

    async def ask(name: str, runtime: Runtime) -> None:
        client = RemotingClient(runtime)
        for n in range(10):
            body = f"{name}{n}".encode()
            await client.invoke(f"server:{server.port}", RemotingCommand(10, body=body))
            trace.append((world.now, f"{name} has {n}"))
            await runtime.timers.sleep(runtime.random.random())
        await client.close()

    async with asyncio.TaskGroup() as group:
        for name in ("a", "b"):
            group.create_task(ask(name, world.runtime(name)))
    await server.close()


def trace_of(seed: int) -> list[tuple[float, str]]:
    trace: list[tuple[float, str]] = []
    world = World(seed)
    world.run(chatter(world, trace))
    return trace


def test_the_same_seed_gives_the_same_schedule() -> None:
    assert len(trace_of(7)) == 40
    assert trace_of(7) == trace_of(7)
    assert trace_of(7) != trace_of(8)


def test_time_jumps_and_every_clock_agrees() -> None:
    world = World()

    async def main() -> str:
        runtime = world.runtime()
        assert (world.now, runtime.clock.monotonic()) == (0.0, 0.0)
        assert runtime.clock.now_ms() == 1_700_000_000_000
        await runtime.timers.sleep(30 * 24 * 3600.0)
        assert world.now == runtime.clock.monotonic() == 2_592_000.0
        assert runtime.clock.now_ms() == 1_702_592_000_000
        return "done"

    assert world.run(main()) == "done"
    assert world.now == 2_592_000.0


def test_timers_of_one_moment_fire_in_the_order_they_were_set() -> None:
    world = World()
    fired: list[str] = []

    async def main() -> None:
        timers = world.runtime().timers
        for n in range(50):
            timers.call_later(2.0, fired.append, f"set at 0: {n}")
        timers.call_timeout(1.0, timers.call_later, 1.0, fired.append, "set at 1")
        timers.call_later(2.0, fired.append, "never").cancel()
        timers.call_later(2.0, fired.append, "last set at 0")
        await timers.sleep(3.0)

    world.run(main())
    assert fired == [f"set at 0: {n}" for n in range(50)] + ["last set at 0", "set at 1"]


def test_waiting_without_a_timer_is_reported_as_a_deadlock() -> None:
    world = World()

    async def main() -> None:
        await world.sleep(5.0)
        await asyncio.Event().wait()

    with pytest.raises(DeadlockError, match=r"deadlock at 5\.000 s: .*main") as caught:
        world.run(main())
    assert "nothing ready, no timer set" in str(caught.value)


def test_there_are_no_threads() -> None:
    world = World()

    async def main() -> None:
        await asyncio.to_thread(print)

    with pytest.raises(RuntimeError, match="no threads under virtual time"):
        world.run(main())


def test_workers_deliver_results_and_errors() -> None:
    world = World()

    async def main() -> None:
        workers = world.runtime().workers
        assert await workers.run(divmod, 7, 2) == (3, 1)
        with pytest.raises(ZeroDivisionError):
            await workers.run(divmod, 7, 0)
        workers.close()

    world.run(main())


def test_each_runtime_has_its_own_repeatable_random_numbers() -> None:
    def draw(seed: int) -> list[float]:
        world = World(seed)
        sources: list[random.Random] = [world.runtime(host).random for host in ("a", "a", "b")]
        return [source.random() for source in sources]

    assert draw(1) == draw(1) != draw(2)
    assert len(set(draw(1))) == 3


@settings(derandomize=True, deadline=None, max_examples=50)
@given(seed=st.integers(0, 2**32), sizes=st.lists(st.integers(1, 2000), max_size=50))
def test_messages_of_one_direction_keep_their_order(seed: int, sizes: list[int]) -> None:
    world = World(seed, latency=(0.0, 0.5))

    async def main() -> tuple[RecordingProtocol, RecordingProtocol]:
        ends = await join(world)
        for n, size in enumerate(sizes):
            for end in ends:
                end.transport.write(bytes([n]) * size)
            await world.sleep(0.01)
        ends[0].transport.close()
        await world.sleep(60)
        return ends

    dialled, accepted = world.run(main())
    messages = [bytes([n]) * size for n, size in enumerate(sizes)]
    assert accepted.names() == ["made", *messages, "eof", ("lost", "NoneType")]
    # The end that closed stops reading; what it did receive was in order.
    heard = dialled.names()[1:-1]
    assert heard == messages[: len(heard)]


def test_a_message_takes_its_latency() -> None:
    world = World(latency=(0.25, 0.25))

    async def main() -> None:
        dialled, accepted = await join(world)
        assert world.now == 0.5
        dialled.transport.write(b"x")
        await world.sleep(1.0)
        assert accepted.events[-1] == (0.75, b"x")
        for end in (dialled, accepted):
            end.transport.close()
        await world.sleep(1.0)

    world.run(main())


def test_a_reader_that_pauses_stops_the_writer() -> None:
    world = World()

    async def main() -> None:
        dialled, accepted = await join(world)
        dialled.transport.set_write_buffer_limits(high=100, low=10)
        accepted.transport.pause_reading()
        dialled.transport.write(bytes(101))
        await world.sleep(1.0)
        assert dialled.names() == ["made", "pause"]
        assert dialled.transport.get_write_buffer_size() == 101
        accepted.transport.resume_reading()
        await world.sleep(1.0)
        assert dialled.names() == ["made", "pause", "resume"]
        assert dialled.transport.get_write_buffer_size() == 0
        accepted.transport.close()
        await world.sleep(1.0)
        assert dialled.names()[-2:] == ["eof", ("lost", "NoneType")]

    world.run(main())


def test_an_aborted_connection_is_reset_at_the_other_end() -> None:
    world = World()

    async def main() -> None:
        dialled, accepted = await join(world)
        dialled.transport.write(b"never arrives")
        dialled.transport.abort()
        dialled.transport.write(b"ignored")
        await world.sleep(1.0)
        assert dialled.names() == ["made", ("lost", "NoneType")]
        assert accepted.names() == ["made", ("lost", "ConnectionResetError")]
        assert accepted.transport.is_closing()

    world.run(main())


def test_addresses_follow_the_rules_of_tcp() -> None:
    world = World()

    async def main() -> None:
        here, there = world.runtime("here"), world.runtime("there")
        factory = lambda: RecordingProtocol(world)  # noqa: E731
        first = await here.network.listen(factory, "0.0.0.0", 0)
        second = await here.network.listen(factory, "here", 0)
        assert first.host == second.host == "here"
        assert first.port != second.port
        with pytest.raises(OSError, match="in use"):
            await here.network.listen(factory, "127.0.0.1", first.port)
        with pytest.raises(OSError, match="assign requested address"):
            await here.network.listen(factory, "there", 0)
        # The same port of another host is free.
        await there.network.listen(factory, "there", first.port)
        first.close()
        with pytest.raises(ConnectionRefusedError):
            await there.network.connect(factory, "here", first.port)
        transport, _ = await here.network.connect(factory, "localhost", second.port)
        assert transport.get_extra_info("peername") == ("here", second.port)
        assert transport.get_extra_info("sockname")[0] == "here"
        transport.close()

    world.run(main())


def test_a_world_runs_once_and_leaves_no_task_behind() -> None:
    world = World()
    ended: list[str] = []

    async def forever() -> None:
        try:
            await world.sleep(1e9)
        finally:
            ended.append("cancelled")

    async def main() -> asyncio.Task[None]:
        task = asyncio.create_task(forever())
        await asyncio.sleep(0)
        return task

    assert world.run(main()).cancelled()
    assert ended == ["cancelled"]
    again = main()
    with pytest.raises(AssertionError, match="once"):
        world.run(again)
    again.close()
