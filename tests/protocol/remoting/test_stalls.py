"""What holds a server's event loop is recorded with its request, timer or close, and logged rarely."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.remoting.connection import Connection, Handler, Reply
from rewindmq.protocol.remoting.process.stall_watch import CHECK_SECONDS, watch_stalls
from rewindmq.protocol.remoting.runtime import Cancellable, Runtime, system_runtime
from rewindmq.protocol.remoting.stalls.record import LOG_SECONDS, STALL_SECONDS, Stalls
from rewindmq.race.sim import World
from tests.protocol.remoting.remoting_stage import RemotingStage


@dataclass
class HandClock:
    """A clock that only the test moves, in real seconds."""

    scale: float = 1.0
    real: float = 100.0

    def now_ms(self) -> int:
        return round(self.real * 1_000)

    def monotonic(self) -> float:
        return self.real / self.scale


@dataclass
class HandTimers:
    """Timers that fire when the test says so."""

    set: list[tuple[float, Callable[[], object]]] = field(default_factory=list)

    def call_later(self, seconds: float, callback: Callable[..., object], *args: Any) -> Cancellable:
        self.set.append((seconds, lambda: callback(*args)))
        return asyncio.TimerHandle(0, lambda: None, (), asyncio.get_event_loop())

    call_timeout = call_later

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("not used")

    def fire(self) -> float:
        """Run the oldest timer; return the seconds it was set for."""
        seconds, callback = self.set.pop(0)
        callback()
        return seconds


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def stalls(clock: HandClock) -> Stalls:
    return Stalls(clock.monotonic, clock.now_ms, clock.scale)


def hold(clock: HandClock, stalls: Stalls, seconds: float, cause: int = RequestCode.PULL_MESSAGE) -> None:
    began = clock.monotonic()
    clock.real += seconds
    stalls.passed(began, cause, "10.0.0.1:5")


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def test_the_longest_hold_keeps_its_request_and_peer(clock: HandClock, stalls: Stalls) -> None:
    hold(clock, stalls, 0.02, RequestCode.HEART_BEAT)
    hold(clock, stalls, 0.03, RequestCode.PULL_MESSAGE)
    hold(clock, stalls, 0.01, RequestCode.HEART_BEAT)
    assert stalls.longest is not None
    assert stalls.longest.ms == pytest.approx(30)
    assert str(stalls.longest) == "PULL_MESSAGE (11) from 10.0.0.1:5"
    assert stalls.count == 0


def test_every_hold_over_the_limit_counts_and_one_at_it_does_not(clock: HandClock, stalls: Stalls) -> None:
    for seconds in (1.0, STALL_SECONDS - 0.001, STALL_SECONDS + 0.001, 0.5):
        hold(clock, stalls, seconds)
    assert stalls.count == 3


def test_each_new_longest_stall_is_logged_and_a_shorter_one_is_not(
    clock: HandClock, stalls: Stalls, caplog: pytest.LogCaptureFixture
) -> None:
    for seconds in (0.02, 0.06, 0.055, 0.07):
        hold(clock, stalls, seconds)
        clock.real += LOG_SECONDS
    assert lines(caplog) == [
        "the event loop stood still for 60 ms: PULL_MESSAGE (11) from 10.0.0.1:5",
        "the event loop stood still for 70 ms: PULL_MESSAGE (11) from 10.0.0.1:5",
    ]


def test_a_burst_of_longer_and_longer_stalls_is_two_lines(
    clock: HandClock, stalls: Stalls, caplog: pytest.LogCaptureFixture
) -> None:
    for milliseconds in range(60, 160):
        hold(clock, stalls, milliseconds / 1_000)
        stalls.log()
        clock.real -= milliseconds / 1_000
    assert len(lines(caplog)) == 1
    clock.real += LOG_SECONDS + 1
    stalls.log()
    stalls.log()
    assert len(lines(caplog)) == 2
    assert lines(caplog)[1].startswith("the event loop stood still for 159 ms")


def test_each_slow_request_is_reported_with_its_milliseconds_and_nothing_else_is(
    clock: HandClock, stalls: Stalls
) -> None:
    slow: list[tuple[int, int]] = []
    stalls.on_slow_request = lambda code, ms: slow.append((code, round(ms)))
    for seconds in (0.2, 0.000_5, 0.002):
        hold(clock, stalls, seconds, RequestCode.SEND_MESSAGE)
    began = clock.monotonic()
    clock.real += 0.3
    stalls.passed(began, "the end of a connection")
    stalls.late(0.4)
    assert slow == [(RequestCode.SEND_MESSAGE, 200), (RequestCode.SEND_MESSAGE, 2)]


def test_stalls_are_real_milliseconds_at_every_time_scale() -> None:
    clock = HandClock(scale=0.01)
    stalls = Stalls(clock.monotonic, clock.now_ms, clock.scale)
    hold(clock, stalls, 0.06)
    assert stalls.longest is not None
    assert stalls.longest.ms == pytest.approx(60)
    assert stalls.count == 1


async def test_a_late_timer_shows_a_step_that_has_no_name(clock: HandClock) -> None:
    timers = HandTimers()
    runtime = replace(system_runtime(), clock=clock, timers=timers)
    with watch_stalls(runtime) as watched:
        assert watched.stalls is not None
        clock.real += CHECK_SECONDS + 0.08
        assert timers.fire() == CHECK_SECONDS
        assert watched.stalls.longest is not None
        assert watched.stalls.longest.ms == pytest.approx(80)
        assert watched.stalls.longest.cause == "several steps, or a background task"


async def test_a_late_timer_does_not_count_a_request_again(clock: HandClock) -> None:
    timers = HandTimers()
    runtime = replace(system_runtime(), clock=clock, timers=timers)
    with watch_stalls(runtime) as watched:
        assert watched.stalls is not None
        for _ in range(2):
            clock.real += CHECK_SECONDS - 0.01
            hold(clock, watched.stalls, 0.09)
            timers.fire()
        assert (watched.stalls.count, str(watched.stalls.longest)) == (2, "PULL_MESSAGE (11) from 10.0.0.1:5")


async def test_a_timer_is_recorded_under_its_task(clock: HandClock) -> None:
    timers = HandTimers()

    def work(*args: object) -> None:
        clock.real += 0.07

    def scheduled(number: int, task: Callable[[], object]) -> None:
        task()

    with watch_stalls(replace(system_runtime(), clock=clock, timers=timers)) as watched:
        assert watched.stalls is not None
        watched.timers.call_later(1.0, scheduled, 3, work)
        timers.set[-1][1]()
        assert watched.stalls.longest is not None
        assert watched.stalls.longest.cause == f"timer {work.__qualname__}"


def serve(clock: HandClock, handler: Handler, seconds_of_close: float = 0.0) -> str:
    """Serve one request and its connection's end in a simulated world; return the longest hold."""
    world = World(seed=1)
    stalls = Stalls(clock.monotonic, clock.now_ms, clock.scale)

    def close(connection: Connection, reason: object) -> None:
        clock.real += seconds_of_close

    async def scenario() -> None:
        async with AsyncExitStack() as exits:
            runtime: Runtime = replace(world.runtime(), clock=clock, stalls=stalls)
            stage = RemotingStage(runtime, exits)
            server = await stage.server({RequestCode.PULL_MESSAGE: handler}, on_close=close)
            client = stage.client()
            address = f"{server.host}:{server.port}"
            await client.invoke(address, RemotingCommand(RequestCode.PULL_MESSAGE), 5.0)
            await client.close()

    world.run(scenario())
    return "" if stalls.longest is None else f"{stalls.longest.ms:.0f} ms, {stalls.longest.cause}"


def test_a_plain_handler_is_timed(clock: HandClock) -> None:
    def slow(connection: Connection, request: RemotingCommand) -> RemotingCommand:
        clock.real += 0.08
        return RemotingCommand(0)

    assert serve(clock, slow) == "80 ms, PULL_MESSAGE (11)"


def test_each_step_of_a_handler_that_waits_is_timed(clock: HandClock) -> None:
    async def slow(connection: Connection, request: RemotingCommand) -> RemotingCommand:
        for seconds in (0.02, 0.04, 0.03):
            clock.real += seconds
            await asyncio.sleep(0)
        return RemotingCommand(0)

    assert serve(clock, slow) == "40 ms, PULL_MESSAGE (11)"


def test_a_handler_that_fails_is_timed(clock: HandClock) -> None:
    async def fail(connection: Connection, request: RemotingCommand) -> RemotingCommand:
        await asyncio.sleep(0)
        clock.real += 0.06
        raise KeyError("inside")

    assert serve(clock, fail) == "60 ms, PULL_MESSAGE (11)"


def test_the_end_of_a_connection_is_timed(clock: HandClock) -> None:
    def handler(connection: Connection, request: RemotingCommand) -> Reply:
        return RemotingCommand(0)

    assert serve(clock, handler, seconds_of_close=0.09) == "90 ms, the end of a connection"
