"""A scenario, and the stage it is played on.

A scenario asserts what is promised of every client, and returns its *outcome*: what else happened that has to
be the same with the real broker, free of ids, addresses and times. All scenarios of a run are played at the
same time by one driver against one cluster, each with topics and groups of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from interop.driver import Driver
from interop.servers import Server

from rewindmq.client import AdminClient
from rewindmq.protocol.body.registration import TopicConfig

Outcome = dict[str, Any]

_ROUTE_SECONDS: Final = 30.0
_ASK_SECONDS: Final = 0.1


@dataclass
class Stage:
    """Where one scenario is played.

    Attributes:
        admin: our own admin client at that cluster, for what is not under test.
        prefix: unique to client, cluster and scenario; every topic and group begins with it.
    """

    driver: Driver
    server: Server
    admin: AdminClient
    prefix: str

    def name(self, suffix: str) -> str:
        """A topic or group of this scenario's own."""
        return f"{self.prefix}-{suffix}"

    async def topic(self, suffix: str = "topic", queues: int = 4) -> str:
        """Create a topic and wait until it has a route."""
        topic = self.name(suffix)
        config = TopicConfig(topic_name=topic, read_queue_nums=queues, write_queue_nums=queues)
        await self.admin.create_and_update_topic_config(self.server.broker_address, config)
        async with asyncio.timeout(_ROUTE_SECONDS):
            # The name server tells nobody of new routes.
            while topic not in await self.admin.fetch_all_topic_list():  # noqa: ASYNC110
                await asyncio.sleep(_ASK_SECONDS)
        return topic

    async def producer(self, suffix: str = "producer", **options: Any) -> str:
        """Start a producer; returns the name to say to ``send.*``."""
        name = self.name(suffix)
        address = self.server.namesrv_address
        await self.driver.do("producer.start", name=name, group=name, namesrv=address, **options)
        return name

    async def consumer(
        self, topic: str, suffix: str = "consumer", *, op: str = "consume.concurrent", **options: Any
    ) -> str:
        """Start a consumer from the first message on; returns its name, which is its group's, too."""
        name = self.name(suffix)
        fields: dict[str, Any] = {
            "name": name,
            "group": name,
            "namesrv": self.server.namesrv_address,
            "topic": topic,
            "expression": "*",
            "from": "first",
        }
        await self.driver.do(op, **(fields | options))
        return name


Play = Callable[[Stage], Awaitable[Outcome]]


@dataclass(frozen=True)
class Scenario:
    """One feature, shown.

    Attributes:
        feature: the id, as in the compatibility page's first column.
        title: the feature in words.
        needs: operations without which a driver skips it, since its library has no such thing.
    """

    feature: str
    title: str
    needs: frozenset[str]
    play: Play


SCENARIOS: Final[dict[str, Scenario]] = {}


def scenario(feature: str, title: str, *needs: str) -> Callable[[Play], Play]:
    """Add a scenario to the list; ``needs`` are the drivers' operations that it uses."""

    def add(play: Play) -> Play:
        assert feature not in SCENARIOS, f"{feature} is there already"
        SCENARIOS[feature] = Scenario(feature, title, frozenset(needs), play)
        return play

    return add


async def all_of(*coroutines: Awaitable[Any]) -> list[Any]:
    """Wait for all; the first error ends it."""
    return list(await asyncio.gather(*coroutines))
