"""Look-ups of routes that several clients of one instance share."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from rewindmq.client.core.route_table import RouteTable
from rewindmq.protocol.body.route import TopicRouteData


async def test_a_caller_that_asks_right_after_a_look_up_gets_the_route() -> None:
    """Two producers of one instance first send to a topic at the same time; the second once got no route."""
    answered = asyncio.get_running_loop().create_future()

    async def topic_route(topic: str) -> TopicRouteData:
        await answered
        return TopicRouteData()

    told: list[str] = []
    api: Any = SimpleNamespace(topic_route=topic_route)
    table = RouteTable(api, lambda topic, route: told.append(topic))

    async def ask_late() -> int:
        await answered
        before = len(told)
        await table.refresh("T")
        return len(told) - before

    first = asyncio.ensure_future(table.refresh("T"))
    await asyncio.sleep(0)
    # Waits for the look-up's answer, so it continues when the look-up has ended without a route.
    late = asyncio.ensure_future(ask_late())
    await asyncio.sleep(0)
    answered.set_result(None)
    assert await first
    assert await late == 1
    await asyncio.sleep(0)
    assert not table._lookups
