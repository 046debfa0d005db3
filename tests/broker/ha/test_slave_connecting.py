"""A slave whose connection to its master's log does not come about, under virtual time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from rewindmq.protocol.remoting.address import parse_address
from rewindmq.protocol.remoting.runtime import Listener, Network
from tests.broker.ha.test_replication import Pair
from tests.support.answers import present
from tests.support.fixtures import RunScenario, simulated
from tests.support.stage import SimStage

Factory = Callable[[], asyncio.Protocol]
# RocketMQ 4.9.7: RemotingUtil#connect, and HAClient's pause between two attempts; seconds.
CONNECT_LIMIT = 5.0
PAUSE = 5.0


class FaultyNetwork:
    """A network on which connections to chosen ports never come about, or fail as no network should.

    Attributes:
        silent: ports that accept no connection.
        failing: ports at which ``connect`` raises this.
        asked: seconds at which a silent or failing port was dialled.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.silent: set[int] = set()
        self.failing: dict[int, Exception] = {}
        self.asked: list[float] = []
        self._clock = clock
        self._inner: Network | None = None

    def over(self, inner: Network) -> Network:
        self._inner = inner
        return self

    async def listen(self, factory: Factory, host: str, port: int) -> Listener:
        assert self._inner is not None
        return await self._inner.listen(factory, host, port)

    async def connect(
        self, factory: Factory, host: str, port: int
    ) -> tuple[asyncio.Transport, asyncio.Protocol]:
        assert self._inner is not None
        if port in self.silent or port in self.failing:
            self.asked.append(self._clock())
        if port in self.failing:
            raise self.failing[port]
        if port in self.silent:
            await asyncio.Event().wait()
        return await self._inner.connect(factory, host, port)


async def pair_with(stage: SimStage, network: FaultyNetwork, error: Exception | None = None) -> Pair:
    """A master with 5 messages and a slave that meets the fault at the port of the master's log."""
    pair = Pair(stage)
    namesrv = await stage.start_namesrv()
    pair.config["namesrv_addr"] = namesrv.address
    pair.master = await stage.start_broker(**pair.config)
    pair.at_master = stage.peer("c1", pair.master.address)
    await pair.at_master.fill(5)
    port = pair.master.context.replication.master.port
    if error is None:
        network.silent.add(port)
    else:
        network.failing[port] = error
    stage.network = network.over
    pair.slave = await pair.start_slave()
    stage.network = None
    return pair


def errors(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.levelno >= logging.ERROR]


def test_an_unexpected_exception_is_logged_and_the_slave_goes_on(
    simulate: RunScenario, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(stage: SimStage) -> None:
        network = FaultyNetwork(stage.runtime.clock.monotonic)
        pair = await pair_with(stage, network, error=LookupError("no such thing"))
        await stage.at(12)
        assert len(network.asked) >= 2
        assert network.asked[1] - network.asked[0] == pytest.approx(PAUSE)
        network.failing.clear()
        await stage.at(20)
        await pair.caught_up()

    simulate(scenario, brokers=0)
    (record,) = errors(caplog)
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], LookupError)


def test_an_exception_while_the_log_arrives_is_logged_and_the_slave_goes_on(
    simulate: RunScenario, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(stage: SimStage) -> None:
        pair = await Pair(stage).start()
        await stage.at(10)
        store = pair.slave.context.store

        def fail(position: int, data: bytes) -> Any:
            raise LookupError("no such thing")

        with monkeypatch.context() as patch:
            patch.setattr(store, "append_replica", fail)
            await pair.at_master.fill(5)
            await stage.at(12)
        assert pair.logs()[1] == 0
        await stage.at(30)
        await pair.caught_up()

    simulate(scenario, brokers=0)
    assert [type(record.exc_info[1]) for record in errors(caplog) if record.exc_info] == [LookupError]


def test_a_table_that_cannot_be_taken_over_is_logged_and_leaves_the_others_alone(
    simulate: RunScenario, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(stage: SimStage) -> None:
        pair = await Pair(stage).start()
        await pair.at_master.create_topic()
        await pair.at_master.heartbeat()
        slave = pair.slave.context

        def fail(wrapper: object) -> None:
            raise LookupError("no such thing")

        with monkeypatch.context() as patch:
            patch.setattr(slave.tables.topics, "take_over", fail)
            await stage.at(30)
        assert slave.tables.topics.find("T") is None
        assert slave.tables.groups.get("G") is not None
        await stage.at(60)
        assert slave.tables.topics.find("T") is not None

    simulate(scenario, brokers=0)
    assert [type(record.exc_info[1]) for record in errors(caplog) if record.exc_info] == [LookupError]


def test_connecting_to_a_master_that_does_not_answer_has_a_limit(
    simulate: RunScenario, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(stage: SimStage) -> None:
        network = FaultyNetwork(stage.runtime.clock.monotonic)
        pair = await pair_with(stage, network)
        await stage.at(12)
        assert len(network.asked) == 2
        assert network.asked[1] - network.asked[0] == pytest.approx(CONNECT_LIMIT + PAUSE)
        network.silent.clear()
        await stage.at(30)
        await pair.caught_up()

    simulate(scenario, brokers=0)
    (record,) = errors(caplog)
    assert "no connection within 5000 ms" in record.getMessage()


@pytest.mark.parametrize("moment", [2.0, CONNECT_LIMIT + 2.0], ids=["connecting", "pausing"])
@simulated(brokers=0)
async def test_a_new_master_address_is_followed_at_once(stage: SimStage, moment: float) -> None:
    network = FaultyNetwork(stage.runtime.clock.monotonic)
    pair = await pair_with(stage, network)
    master = pair.master
    await stage.at(moment)
    assert network.asked
    assert pair.logs()[1] == 0
    # The same log at another address.
    host, port = parse_address(master.address)[0], master.context.replication.master.port + 1
    listener = await master._runtime.network.listen(master.context.replication.master._connection, host, port)
    present(pair.slave.context.replication.slave).on_master(master.address, f"{host}:{port}")
    await stage.at(moment + 0.2)
    assert pair.logs()[0] == pair.logs()[1] > 0
    listener.close()


@simulated(brokers=0)
async def test_a_broker_that_connects_as_a_slave_stops_at_once(stage: SimStage) -> None:
    network = FaultyNetwork(stage.runtime.clock.monotonic)
    pair = await pair_with(stage, network)
    await stage.at(2)
    assert network.asked
    await pair.slave.close()
    assert stage.runtime.clock.monotonic() < 2.5
