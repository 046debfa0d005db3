"""What it costs to remove a broker, and what is seen meanwhile (docs/spec/nameserver.md A.3)."""

from __future__ import annotations

import asyncio

import pytest

from rewindmq.namesrv import route_info
from rewindmq.namesrv.profile import PROFILES
from rewindmq.namesrv.route_info import RouteInfoManager
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.profile import Profile
from tests.namesrv.connected import connected
from tests.namesrv.test_route_info import registration
from tests.support.stage import ServerStage
from tests.support.work import lines_run


def routes_of(brokers: int, topics: int) -> RouteInfoManager:
    """Brokers with so many topics of their own each, and a topic that all of them have."""
    routes = RouteInfoManager(PROFILES[Profile.V49])
    for number in range(brokers):
        name = f"broker-{number}"
        own = [f"{name}-{topic}" for topic in range(topics)]
        routes.register(
            registration(broker_name=name, address=f"h:{number}", connection=number, topics=["All", *own]),
            0.0,
        )
    return routes


def test_removing_a_broker_does_not_visit_the_others() -> None:
    few, many = routes_of(3, topics=10), routes_of(300, topics=10)
    by_connection = [lines_run(lambda: routes.remove_connection(1)) for routes in (few, many)]  # noqa: B023
    assert by_connection[0] == by_connection[1]
    by_request = [lines_run(lambda: routes.unregister("broker-0", 0, "h:0")) for routes in (few, many)]  # noqa: B023
    assert by_request[0] == by_request[1]
    assert len(many.topics()) == 298 * 10 + 1
    route = many.find_route("All")
    assert route is not None
    assert len(route.queue_datas) == len(route.broker_datas) == 298


def test_a_broker_with_many_topics_has_no_route_at_once_and_is_freed_in_slices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(route_info, "SWEEP_SLICE", 100)
    costs = []
    for topics in (1_000, 10_000):
        routes = routes_of(1, topics)
        costs.append(lines_run(lambda: routes.remove_connection(0)))  # noqa: B023
        assert routes.topics() == []
        assert routes.find_route("All") is None
        assert routes.queues_in_memory == topics + 1 - 100
        slices = 1
        while not routes.sweep():
            slices += 1
        assert slices == topics // 100
        assert routes.queues_in_memory == 0
    assert costs[0] == costs[1]


def test_a_broker_that_returns_while_it_is_freed_keeps_the_topics_that_it_registers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(route_info, "SWEEP_SLICE", 1)
    routes = RouteInfoManager(PROFILES[Profile.V49])
    routes.register(registration(topics=("T", "U", "V", "W")), 0.0)
    routes.remove_connection("connection")
    routes.register(registration(topics=("U", "X")), 1.0)
    assert sorted(routes.topics()) == ["U", "X"]
    while not routes.sweep():
        assert sorted(routes.topics()) == ["U", "X"]
    assert routes.queues_in_memory == 2
    assert routes.find_route("T") is None
    assert routes.find_route("U") is not None


def test_the_limit_of_topics_by_brokers_counts_masters_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route_info, "MAX_TOPIC_QUEUES", 2)
    routes = RouteInfoManager(PROFILES[Profile.V49])
    routes.register(registration(), 0.0)
    routes.register(registration(broker_id=1, address="h:2", topics=("V", "W", "X")), 0.0)
    assert sorted(routes.topics()) == ["T", "U"]


async def test_the_server_frees_the_queues_of_a_broker_that_has_gone(
    stage: ServerStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(route_info, "SWEEP_SLICE", 10)
    namesrv, broker, client = await connected(stage)
    await broker.register(topics=tuple(f"T{number}" for number in range(200)))
    await client.route("T1")
    routes = namesrv.context.routes
    assert routes.queues_in_memory == 200
    await broker.client.close()
    async with asyncio.timeout(60):
        while routes.queues_in_memory == 200:
            await client.find_route("T1")
        while routes.queues_in_memory:
            assert (await client.find_route("T1")).code == ResponseCode.TOPIC_NOT_EXIST


async def test_one_connection_of_many_brokers_writes_few_log_lines(
    stage: ServerStage, caplog: pytest.LogCaptureFixture
) -> None:
    namesrv, broker, client = await connected(stage)
    for number in range(30):
        await broker.register(f"10.0.0.2:{number + 1}", name=f"broker-{number}")
    await broker.client.close()
    async with asyncio.timeout(60):
        while namesrv.context.routes.queues_in_memory:
            await client.find_route("T")
    lines = [record.message for record in caplog.records if "removed" in record.message]
    assert len(lines) == 21
    assert lines[-1].startswith("10 more brokers removed: connection closed")
