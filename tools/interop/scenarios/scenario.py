"""A scenario, and the stage it is played on.

A scenario asserts what is promised of every client, and returns its *outcome*: what else happened that has to
be the same with the real broker, free of ids, addresses and times. All scenarios of a run are played at the
same time by one driver against one cluster, each with topics and groups of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rewindmq.client import AdminClient
from rewindmq.protocol.body.registration import TopicConfig
from rewindmq.protocol.errors import RequestTimeoutError, ResponseError
from tools.interop.driver import Driver, DriverError
from tools.interop.servers import Server

Outcome = dict[str, Any]
Message = dict[str, Any]

_TRIES: Final = 6
_COMMIT_SECONDS: Final = 100.0
_ROUTE_SECONDS: Final = 90.0
_READ_SECONDS: Final = 60.0
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

    async def topic(self, suffix: str = "topic", queues: int = 4, perm: int = 6) -> str:
        """Create a topic and wait until it has a route."""
        topic = self.name(suffix)
        config = TopicConfig(topic_name=topic, read_queue_nums=queues, write_queue_nums=queues, perm=perm)
        for _ in range(_TRIES):
            # A JVM that has just been started may take longer than an administrator's patience.
            with contextlib.suppress(RequestTimeoutError):
                await self.admin.create_and_update_topic_config(self.server.broker_address, config)
                break
        await self.wait_route(topic)
        return topic

    async def wait_route(self, topic: str) -> None:
        """Until the name server knows where a topic is; it tells nobody of new routes."""
        async with within(_ROUTE_SECONDS, f"no route of {topic}"):
            while topic not in await self.admin.fetch_all_topic_list():  # noqa: ASYNC110
                await asyncio.sleep(_ASK_SECONDS)

    async def committed(self, topic: str, group: str, count: int) -> None:
        """Until so many messages are committed in all queues together."""
        total = 0
        async with within(_COMMIT_SECONDS, lambda: f"{total} of {count} messages committed by {group}"):
            while True:
                try:
                    stats = await self.admin.examine_consume_stats(group, topic)
                except ResponseError:
                    total = 0
                else:
                    total = sum(wrapper.consumer_offset for wrapper in stats.offset_table.values())
                if total >= count:
                    return
                await asyncio.sleep(_ASK_SECONDS)

    async def producer(self, suffix: str = "producer", **options: Any) -> str:
        """Start a producer; returns the name to say to ``send.*``."""
        name = self.name(suffix)
        address = self.server.namesrv_address
        await self.driver.do("producer.start", name=name, group=name, namesrv=address, **options)
        return name

    async def send(
        self, producer: str, messages: Sequence[Message], op: str = "send.sync"
    ) -> list[dict[str, Any]]:
        """Send, and see every message stored; what the library told of each."""
        answer = await self.driver.do(op, producer=producer, messages=messages)
        results: list[dict[str, Any]] = answer["results"]
        assert [result.get("status") for result in results] == ["SEND_OK"] * len(results), results
        return results

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

    async def reader(self, topic: str) -> str:
        """Start a pull consumer; returns the name to say to ``pull.*``."""
        name = self.name("reader")
        address = self.server.namesrv_address
        await self.driver.do("pull.start", name=name, group=name, namesrv=address, topic=topic)
        return name

    async def read(self, reader: str, topic: str, count: int) -> list[Message]:
        """The messages of all queues of a topic, once there are so many."""
        messages: list[Message] = []
        async with within(_READ_SECONDS, lambda: f"{len(messages)} of {count} messages in {topic}"):
            while True:
                answer = await self.driver.do("pull.queues", consumer=reader, topic=topic)
                messages = []
                for queue in answer["queues"]:
                    messages += await self._read_queue(reader, queue)
                if len(messages) >= count:
                    return messages
                await asyncio.sleep(_ASK_SECONDS)

    async def _read_queue(self, reader: str, queue: dict[str, Any]) -> list[Message]:
        messages: list[Message] = []
        offset = 0
        while True:
            fields = {"consumer": reader, "queue": queue, "offset": offset, "expression": "*", "max": 32}
            answer = await self.driver.do("pull.pull", **fields)
            if answer["next"] == offset:
                return messages
            messages += answer["messages"]
            offset = answer["next"]


def texts(count: int, what: str = "body") -> list[str]:
    """Bodies that can be told from each other."""
    return [f"{what} {number}" for number in range(count)]


def to_send(topic: str, bodies: Iterable[str], **more: Any) -> list[Message]:
    """Messages with these bodies, all else the same."""
    return [{"topic": topic, "body": body} | more for body in bodies]


def looks(message: Message) -> dict[str, Any]:
    """What of a delivered message has to be the same with every cluster."""
    properties = message["properties"]
    return {
        "tags": message["tags"],
        "keys": message["keys"],
        "sys_flag": message["sys_flag"],
        "reconsume_times": message["reconsume_times"],
        "properties": None if properties is None else sorted(properties),
    }


def by_body(messages: Iterable[Message]) -> dict[str, list[Message]]:
    """The deliveries of each body, in the order they were made."""
    deliveries: dict[str, list[Message]] = {}
    for message in messages:
        deliveries.setdefault(message["body"], []).append(message)
    return deliveries


async def failure(attempt: Awaitable[Any]) -> dict[str, Any]:
    """What the library makes of something that must fail."""
    try:
        answer = await attempt
    except DriverError as error:
        return {"type": error.kind, "code": error.code}
    for result in answer.get("results", ()) if isinstance(answer, dict) else ():
        if "error" in result:
            return {"type": result["error"]["type"], "code": result["error"]["code"]}
    raise AssertionError(f"it went well: {answer}")


@contextlib.asynccontextmanager
async def within(seconds: float, reached: str | Callable[[], str]) -> AsyncIterator[None]:
    """A bound that says how far it came.

    Args:
        reached: what to say then, or how to find out.
    """
    bound = asyncio.timeout(seconds)
    try:
        async with bound:
            yield
    except TimeoutError as error:
        if not bound.expired():
            raise
        text = reached if isinstance(reached, str) else reached()
        raise TimeoutError(f"after {seconds:g} s: {text}") from error


async def until(holds: Callable[[], bool], seconds: float, reached: str | Callable[[], str]) -> None:
    """Wait until something holds that only the driver's lines change, or the clock; see ``within``."""
    async with within(seconds, reached):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(_ASK_SECONDS)


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
