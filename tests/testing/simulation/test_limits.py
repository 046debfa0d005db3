"""What a simulated test cannot do, and tests that never end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest

from rewindmq import Producer
from rewindmq.protocol.errors import ClientError
from rewindmq.race.sim import DeadlockError
from rewindmq.testing import ClusterOptions, KitError, Rmq, simulated
from rewindmq.testing.simulation.run import Simulation, SimulationSettings
from tests.testing.simulation.bodies import send_and_consume, simulation


async def thread(rmq: Rmq) -> None:
    await asyncio.to_thread(print)


async def socket(rmq: Rmq) -> None:
    await asyncio.open_connection("127.0.0.1", 1)


async def host_name(rmq: Rmq) -> None:
    await asyncio.get_running_loop().getaddrinfo("localhost", 1)


async def process(rmq: Rmq) -> None:
    await asyncio.create_subprocess_exec("true")


async def own_client(rmq: Rmq) -> None:
    async with Producer("own", rmq.namesrv_address) as producer:
        await producer.fetch_publish_message_queues("orders")


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (thread, "the test uses a thread, for print, which cannot be simulated"),
        (socket, "the test uses a real connection, which cannot be simulated"),
        (host_name, "the test uses the resolution of a host name"),
        (process, "the test uses a process"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_cannot_be_simulated_is_refused(body: Callable[[Rmq], Awaitable[None]], text: str) -> None:
    with pytest.raises(KitError, match=text):
        simulation(body).check(range(1))


def test_a_client_without_the_options_of_the_test_is_refused() -> None:
    with pytest.raises(ClientError, match=r"clients of RewindMQ need the arguments \*\*rmq.client_options"):
        simulation(own_client).check(range(1))


def test_another_thread_cannot_call_the_test() -> None:
    refused: list[KitError] = []

    async def body(rmq: Rmq) -> None:
        loop = asyncio.get_running_loop()

        def call() -> None:
            try:
                loop.call_soon_threadsafe(print)
            except KitError as error:
                refused.append(error)

        other = threading.Thread(target=call)
        other.start()
        other.join()

    simulation(body).check(range(1))
    assert "a call from another thread" in str(refused[0])


async def wait_for_ever(rmq: Rmq) -> None:
    await asyncio.Event().wait()


async def wait_without_servers(rmq: Rmq) -> None:
    await rmq.kill("broker-a")
    await rmq.kill("namesrv")
    await asyncio.Event().wait()


async def spin(rmq: Rmq) -> None:
    while True:
        await rmq.admin.runtime.timers.sleep(0)


def test_a_test_that_never_ends_fails_with_the_place_where_it_waits() -> None:
    with pytest.raises(KitError, match=r"not ended after 60 virtual seconds.*in wait_for_ever \(test_limits"):
        simulation(wait_for_ever, limit=60.0).check(range(1))


def test_a_test_for_which_nothing_can_happen_fails_at_once() -> None:
    text = r"nothing is left to happen at .*Waiting: task test in wait_without_servers \(test_limits.py:\d+\)"
    with pytest.raises(DeadlockError, match=text):
        simulation(wait_without_servers).check(range(1))


def test_a_test_that_never_waits_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rewindmq.testing.simulation.loop._MAX_TURNS", 1_000)
    with pytest.raises(KitError, match=r"virtual time stands still at .*in spin \(test_limits"):
        simulation(spin).check(range(1))


def test_a_test_that_fails_without_any_choice_says_so() -> None:
    async def body(rmq: Rmq) -> None:
        raise AssertionError("wrong")

    with pytest.raises(AssertionError, match="wrong") as raised:
        simulation(body).check(range(10))
    assert raised.value.__notes__[-1].splitlines() == [
        "seed 0 fails, 0 seeds passed before; to run it alone: --rewindmq-seed 0",
        "its schedule does not matter: the test fails without delays and kills, too",
    ]


def test_options_out_of_range_are_refused() -> None:
    with pytest.raises(KitError, match="seeds must be 1 or greater, not 0"):
        simulated(seeds=0)
    with pytest.raises(KitError, match="latency and kills must be 0 or greater"):
        simulated(kills=-1)
    with pytest.raises(KitError, match="limit must be greater than 0, not 0"):
        simulated(limit=0)
    settings = SimulationSettings(latency=0.0, kills=0, power_failures=False, limit=1.0)
    with pytest.raises(KitError, match="slaves cannot be simulated"):
        Simulation(send_and_consume, settings, ClusterOptions(slaves=1))
    with pytest.raises(KitError, match="brokers know no noSuchKey"):
        Simulation(send_and_consume, settings, ClusterOptions(broker_config=(("noSuchKey", "1"),)))


def test_the_decorated_function_must_be_a_test_with_rmq() -> None:
    def plain(rmq: Rmq) -> None: ...

    async def without() -> None: ...

    with pytest.raises(KitError, match="write `async def plain`"):
        simulated()(plain)  # type: ignore[arg-type]
    with pytest.raises(KitError, match="needs a test with the parameter rmq, but without has none"):
        simulated()(without)
