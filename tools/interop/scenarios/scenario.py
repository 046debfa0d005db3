"""A scenario, and the stage it is played on.

A scenario asserts what is promised of every client, and returns its *outcome*: what else happened that has to
be the same with the real broker, free of ids, addresses and times. All scenarios are under way at the same
time, each with topics and groups of its own. So a scenario waits for what settles an outcome, never for time:
every bound here only turns a hang into a failure.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import InitVar, dataclass, field
from typing import Any, Final, TypeVar

from rewindmq import AdminClient
from rewindmq.protocol.errors import ConnectError, RequestTimeoutError, ResponseError
from tools.interop.driver import Driver, DriverError
from tools.interop.raw import create_topic
from tools.interop.servers import Server

Outcome = dict[str, Any]
Message = dict[str, Any]

# Hundreds of scenarios are under way at once, on two cores.
SECONDS: Final = 300.0
# How often a broker is asked, and how often a list is looked at.
_ASK_SECONDS: Final = 0.5
_LOOK_SECONDS: Final = 0.1
_Asked = TypeVar("_Asked")


@dataclass(frozen=True)
class OneOf:
    """What a program is unsure of itself: one of these comes out, now this, now that, at every server.

    Two are equal where the same is allowed, whatever was seen.

    Attributes:
        why: what in the program decides it.
        allowed: all that may come out.

    Raises:
        AssertionError: something else was seen.
    """

    why: str
    allowed: tuple[object, ...]
    seen: InitVar[object]

    def __post_init__(self, seen: object) -> None:
        assert seen in self.allowed, f"{seen!r} is none of {self.allowed}: {self.why}"


@dataclass
class Stage:
    """Where one scenario is played.

    Attributes:
        admin: our own admin client at that cluster, for what is not under test.
        prefix: unique to client, cluster and scenario; every topic and group begins with it.
        has_begun: called when the scenario first waits for something that takes its time.
    """

    driver: Driver
    server: Server
    admin: AdminClient
    prefix: str
    has_begun: Callable[[], None] = lambda: None
    _running: dict[str, str] = field(default_factory=dict)
    _topics: list[str] = field(default_factory=list)

    async def stop(self, name: str) -> None:
        """End a producer or consumer of this scenario's."""
        kind = self._running.pop(name)
        fields: dict[str, Any] = {"producer" if kind == "producer" else "consumer": name}
        await self.driver.do(f"{kind}.stop", **fields)

    async def close(self) -> None:
        """End all that still run: clients that only idle cost two cores more than those that work."""
        for name in reversed([*self._running]):
            await self.stop(name)

    def name(self, suffix: str) -> str:
        """A topic or group of this scenario's own."""
        return f"{self.prefix}-{suffix}"

    async def topic(self, suffix: str = "topic", queues: int = 4, perm: int = 6) -> str:
        """Create a topic and wait until it has a route."""
        topic = self.name(suffix)
        await asyncio.to_thread(create_topic, self.server.broker_address, topic, queues, perm)
        await self.wait_route(topic)
        self._topics.append(topic)
        return topic

    async def wait_route(self, topic: str) -> None:
        """Wait until the name server knows where a topic is; it tells no client of new routes."""

        async def is_known() -> bool:
            return await self.asked(self.admin.examine_topic_route_info(topic)) is not None

        await self.reached(is_known, lambda: f"no route of {topic}")

    async def stored(self, topic: str, count: int) -> None:
        """Wait until the queues of a topic hold so many messages: a real broker fills them after its log."""
        total = 0

        async def are_there() -> bool:
            nonlocal total
            stats = await self.asked(self.admin.examine_topic_stats(topic))
            total = sum(queue.max_offset for queue in stats.offset_table.values()) if stats else 0
            return total >= count

        await self.reached(are_there, lambda: f"{total} of {count} messages are in the queues of {topic}")

    async def committed(self, topic: str, group: str, count: int) -> None:
        """Wait until so many messages are committed in all queues together."""
        total = 0

        async def are_committed() -> bool:
            nonlocal total
            stats = await self.asked(self.admin.examine_consume_stats(group, topic))
            total = sum(queue.consumer_offset for queue in stats.offset_table.values()) if stats else 0
            return total >= count

        await self.reached(are_committed, lambda: f"{total} of {count} messages committed by {group}")

    async def members(self, group: str) -> list[str]:
        """The ids of a group's members, as the broker knows them; none of a group that has none.

        A member that has connected again may be known by two connections for a while.
        """
        connection = await self.asked(self.admin.examine_consumer_connection_info(group))
        return sorted({one.client_id for one in connection.connection_set}) if connection else []

    async def asked(self, question: Awaitable[_Asked]) -> _Asked | None:
        """Return the server's answer; None while it refuses, or takes longer than the admin client waits."""
        try:
            return await question
        except (ConnectError, RequestTimeoutError, ResponseError):
            return None

    async def reached(self, holds: Callable[[], Awaitable[bool]], text: Callable[[], str]) -> None:
        """Wait until something holds that no program tells of.

        Args:
            text: how far it came, for the failure.
        """
        await self._poll(holds, text, _ASK_SECONDS)

    async def _poll(
        self, holds: Callable[[], Awaitable[bool]], text: Callable[[], str], period: float
    ) -> None:
        self.has_begun()
        async with within(SECONDS, text):
            while not await holds():  # noqa: ASYNC110
                await asyncio.sleep(period)

    async def messages(self, consumer: str, count: int) -> list[Message]:
        """The messages delivered to ``consumer``, once there are ``count`` of them at least."""
        self.has_begun()
        return await self.driver.messages(consumer, count, SECONDS)

    async def bodies(self, consumer: str, count: int) -> list[str]:
        """The bodies delivered to ``consumer``, once there are ``count`` of them at least."""
        return [message["body"] for message in await self.messages(consumer, count)]

    async def until(self, holds: Callable[[], bool], text: Callable[[], str]) -> None:
        """Wait until something holds that only the driver's lines change; see ``reached``."""

        async def it_holds() -> bool:
            return holds()

        await self._poll(it_holds, text, _LOOK_SECONDS)

    async def producer(self, suffix: str = "producer", **options: Any) -> str:
        """Start a producer for the scenario's topics; returns the name to say to ``send.*``."""
        name = self.name(suffix)
        address = self.server.namesrv_address
        fields: dict[str, Any] = {"topics": self._topics} | options
        await self.driver.do("producer.start", name=name, group=name, namesrv=address, **fields)
        self._running[name] = "producer"
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
        self,
        topic: str,
        suffix: str = "consumer",
        *,
        op: str = "consume.concurrent",
        start: str = "first",
        **options: Any,
    ) -> str:
        """Start a consumer; returns its name, which is its group's, too, unless ``options`` have another.

        Args:
            start: where a new group begins: at the ``first`` message, or behind the ``last``.
        """
        name = self.name(suffix)
        fields: dict[str, Any] = {"group": name, "expression": "*", "from": start} | options
        namesrv = self.server.namesrv_address
        await self.driver.do(op, name=name, namesrv=namesrv, topic=topic, **fields)
        self._running[name] = op.partition(".")[0]
        return name

    async def reader(self, topic: str) -> str:
        """Start a pull consumer; returns the name to say to ``pull.*``."""
        name = self.name("reader")
        address = self.server.namesrv_address
        await self.driver.do("pull.start", name=name, group=name, namesrv=address, topic=topic)
        self._running[name] = "pull"
        return name

    async def read(self, reader: str, topic: str, count: int) -> list[Message]:
        """The messages of all queues of a topic, once there are so many."""
        await self.stored(topic, count)
        answer = await self.driver.do("pull.queues", consumer=reader, topic=topic)
        return [m for queue in answer["queues"] for m in await self._read_queue(reader, queue)]

    async def _read_queue(self, reader: str, queue: dict[str, Any]) -> list[Message]:
        messages: list[Message] = []
        offset = 0
        while True:
            answer = await self.driver.do(
                "pull.pull", consumer=reader, queue=queue, offset=offset, expression="*", max=32
            )
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
async def within(seconds: float, reached: Callable[[], str]) -> AsyncIterator[None]:
    """A bound that says how far it came.

    Args:
        reached: says it.
    """
    bound = asyncio.timeout(seconds)
    try:
        async with bound:
            yield
    except TimeoutError as error:
        if not bound.expired():
            raise
        text = reached()
        raise TimeoutError(f"after {seconds:g} s: {text}") from error


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
