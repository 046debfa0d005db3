"""A scenario, and the stage that it uses.

A scenario asserts what is promised of every client. It returns its *outcome*: everything else that must be
the same with RocketMQ's broker, without ids, addresses and times. All scenarios run at the same time, each
with its own topics and groups. So a scenario waits for the event that settles an outcome, never for time:
every bound here only turns a hang into a failure.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import InitVar, dataclass, field
from typing import Any, Final, TypeVar

from rewindmq import AdminClient
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import ConnectError, RequestTimeoutError, ResponseError
from rewindmq.protocol.header.admin import GetProducerConnectionListRequestHeader
from tools.interop.driver import DRIVER_ENDED, DriverError, DriverProgram
from tools.interop.raw import ask, create_topic
from tools.interop.servers import Server

# What its driver calls the library, which has limits that no option changes.
RUST: Final = "rocketmq-client-rust"
Outcome = dict[str, Any]
Message = dict[str, Any]

# Hundreds of scenarios run at once on two cores.
SECONDS: Final = 300.0
# The pause between two requests to a broker, and between two looks at a list.
_ASK_SECONDS: Final = 0.5
_LOOK_SECONDS: Final = 0.1
_Asked = TypeVar("_Asked")


@dataclass(frozen=True)
class OneOf:
    """An outcome that a program itself leaves open: at every server, any of these may occur.

    Two are equal if they allow the same, whatever was seen.

    Attributes:
        why: what in the program decides it.
        allowed: all outcomes that may occur.

    Raises:
        AssertionError: another outcome was seen.
    """

    why: str
    allowed: tuple[object, ...]
    seen: InitVar[object]

    def __post_init__(self, seen: object) -> None:
        assert seen in self.allowed, f"{seen!r} is not one of {self.allowed}: {self.why}"


@dataclass
class InteropStage:
    """The client, cluster and helpers of one scenario.

    Attributes:
        admin: RewindMQ's admin client at that cluster, for what is not under test.
        prefix: unique to client, cluster and scenario; every topic and group begins with it.
        has_begun: called when the scenario first waits for something that takes time.
    """

    driver: DriverProgram
    server: Server
    admin: AdminClient
    prefix: str
    has_begun: Callable[[], None] = lambda: None
    _running: dict[str, str] = field(default_factory=dict)
    _topics: list[str] = field(default_factory=list)

    async def stop(self, name: str) -> None:
        """Stop a producer or consumer of this scenario."""
        kind = self._running.pop(name)
        fields: dict[str, Any] = {"producer" if kind == "producer" else "consumer": name}
        await self.driver.do(f"{kind}.stop", **fields)

    async def close(self) -> None:
        """Stop all clients that still run: an idle client takes processor time from the other scenarios."""
        for name in reversed([*self._running]):
            await self.stop(name)

    def name(self, suffix: str) -> str:
        """Return the name of a topic or group that only this scenario uses."""
        return f"{self.prefix}-{suffix}"

    async def topic(self, suffix: str = "topic", queues: int = 4, perm: int = 6) -> str:
        """Create a topic and wait until it has a route."""
        topic = self.name(suffix)
        await asyncio.to_thread(create_topic, self.server.broker_address, topic, queues, perm)
        await self.wait_route(topic)
        self._topics.append(topic)
        return topic

    async def wait_route(self, topic: str) -> None:
        """Wait until the name server knows a topic's route; it sends clients no event for new routes."""

        async def is_known() -> bool:
            return await self.asked(self.admin.topics.examine_topic_route_info(topic)) is not None

        await self.reached(is_known, lambda: f"no route of {topic}")

    async def stored(self, topic: str, count: int) -> None:
        """Wait until a topic's queues hold ``count`` messages: RocketMQ fills them after its log."""
        total = 0

        async def are_there() -> bool:
            nonlocal total
            stats = await self.asked(self.admin.topics.examine_topic_stats(topic))
            total = sum(queue.max_offset for queue in stats.offset_table.values()) if stats else 0
            return total >= count

        await self.reached(are_there, lambda: f"{total} of {count} messages are in the queues of {topic}")

    async def committed(self, topic: str, group: str, count: int) -> None:
        """Wait until ``count`` messages are committed in all queues together."""
        total = 0

        async def are_committed() -> bool:
            nonlocal total
            stats = await self.asked(self.admin.groups.examine_consume_stats(group, topic))
            total = sum(queue.consumer_offset for queue in stats.offset_table.values()) if stats else 0
            return total >= count

        await self.reached(are_committed, lambda: f"{total} of {count} messages committed by {group}")

    async def registered(self, group: str) -> None:
        """Wait until the broker knows a producer of a group.

        A library sends its first heartbeat early. If that one fails on a busy machine, the next follows 30 s
        later; until then the broker has nobody to send a reply to.
        """
        header = GetProducerConnectionListRequestHeader(producer_group=group)
        question = RemotingCommand(RequestCode.GET_PRODUCER_CONNECTION_LIST, header)

        async def is_known() -> bool:
            try:
                answer = await asyncio.to_thread(ask, self.server.broker_address, question)
            except OSError:
                return False
            return answer.code == ResponseCode.SUCCESS

        await self.reached(is_known, lambda: f"the broker knows no producer of {group}")

    async def consumer_ids(self, group: str) -> list[str]:
        """Return the ids of a group's consumers, as the broker knows them; empty if it knows none.

        A consumer that has connected again may be known by two connections for a while.
        """
        connection = await self.asked(self.admin.groups.examine_consumer_connection_info(group))
        return sorted({one.client_id for one in connection.connection_set}) if connection else []

    async def connections(self, group: str) -> frozenset[str]:
        """Return the addresses of the connections over which a group's consumers sent heartbeats."""
        connection = await self.asked(self.admin.groups.examine_consumer_connection_info(group))
        return frozenset(one.client_addr for one in connection.connection_set) if connection else frozenset()

    async def asked(self, question: Awaitable[_Asked]) -> _Asked | None:
        """Return the server's answer, None if it refuses, is unreachable or does not answer in time."""
        try:
            return await question
        except (ConnectError, RequestTimeoutError, ResponseError):
            return None

    async def reached(self, holds: Callable[[], Awaitable[bool]], text: Callable[[], str]) -> None:
        """Wait for a condition that no program reports, by asking again and again.

        Args:
            text: returns the last state, for the failure.
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
        """Wait until ``consumer`` has ``count`` messages or more; return all."""
        self.has_begun()
        return await self.driver.messages(consumer, count, SECONDS)

    async def bodies(self, consumer: str, count: int) -> list[str]:
        """Wait until ``consumer`` has ``count`` messages or more; return the bodies of all."""
        return [message["body"] for message in await self.messages(consumer, count)]

    async def until(self, holds: Callable[[], bool], text: Callable[[], str]) -> None:
        """Wait for a condition that only the driver's lines change; see ``reached``."""

        async def it_holds() -> bool:
            return holds()

        await self._poll(it_holds, text, _LOOK_SECONDS)

    async def producer(self, suffix: str = "producer", **options: Any) -> str:
        """Start a producer for the scenario's topics; return its name for ``send.*``."""
        name = self.name(suffix)
        address = self.server.namesrv_address
        fields: dict[str, Any] = {"topics": self._topics} | options
        await self.driver.do("producer.start", name=name, group=name, namesrv=address, **fields)
        self._running[name] = "producer"
        return name

    async def send(
        self, producer: str, messages: Sequence[Message], op: str = "send.sync"
    ) -> list[dict[str, Any]]:
        """Send messages, assert that each was stored, and return the library's results."""
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
        """Start a consumer; return its name, which is also its group's unless ``options`` name another.

        Args:
            start: where a new group begins: at the ``first`` message, or after the ``last``.
        """
        name = self.name(suffix)
        fields: dict[str, Any] = {"group": name, "expression": "*", "from": start} | options
        namesrv = self.server.namesrv_address
        await self.driver.do(op, name=name, namesrv=namesrv, topic=topic, **fields)
        self._running[name] = op.partition(".")[0]
        return name

    async def reader(self, topic: str) -> str:
        """Start a pull consumer; return its name for ``pull.*``."""
        name = self.name("reader")
        address = self.server.namesrv_address
        await self.driver.do("pull.start", name=name, group=name, namesrv=address, topic=topic)
        self._running[name] = "pull"
        return name

    async def read(self, reader: str, topic: str, count: int) -> list[Message]:
        """Return the messages of all queues of a topic, once there are ``count`` of them."""
        await self.stored(topic, count)
        queues = await self.queues(reader, topic)
        return [m for queue in queues for m in await self._read_queue(reader, queue)]

    async def queues(self, reader: str, topic: str) -> list[dict[str, Any]]:
        """Return the queues of a topic that has a route, once the reader's library finds them."""
        queues: list[dict[str, Any]] = []
        refused = ""

        async def are_found() -> bool:
            nonlocal queues, refused
            try:
                answer = await self.driver.do("pull.queues", consumer=reader, topic=topic)
            except DriverError as error:
                if error.kind == DRIVER_ENDED:
                    raise
                # Java waits 6 s for the name server, and then calls the topic unknown.
                refused = f"{error}"
                return False
            queues = answer["queues"]
            return True

        await self.reached(are_found, lambda: f"{reader} does not find the queues of {topic}: {refused}")
        return queues

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
    """Return different bodies."""
    return [f"{what} {number}" for number in range(count)]


def to_send(topic: str, bodies: Iterable[str], **more: Any) -> list[Message]:
    """Return messages with these bodies and otherwise equal fields."""
    return [{"topic": topic, "body": body} | more for body in bodies]


def looks(message: Message) -> dict[str, Any]:
    """Return the parts of a delivered message that must be the same with every cluster."""
    properties = message["properties"]
    return {
        "tags": message["tags"],
        "keys": message["keys"],
        "sys_flag": message["sys_flag"],
        "reconsume_times": message["reconsume_times"],
        "properties": None if properties is None else sorted(properties),
    }


def by_body(messages: Iterable[Message]) -> dict[str, list[Message]]:
    """Return the deliveries of each body, in their order."""
    deliveries: dict[str, list[Message]] = {}
    for message in messages:
        deliveries.setdefault(message["body"], []).append(message)
    return deliveries


async def failure(attempt: Awaitable[Any]) -> dict[str, Any]:
    """Return the library's error for an attempt that must fail."""
    try:
        answer = await attempt
    except DriverError as error:
        return {"type": error.kind, "code": error.code}
    for result in answer.get("results", ()) if isinstance(answer, dict) else ():
        if "error" in result:
            return {"type": result["error"]["type"], "code": result["error"]["code"]}
    raise AssertionError(f"it succeeded: {answer}")


@contextlib.asynccontextmanager
async def within(seconds: float, reached: Callable[[], str]) -> AsyncIterator[None]:
    """Limit the time of a block; the error says how far the block came.

    Args:
        reached: returns the state for the error.
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


Play = Callable[[InteropStage], Awaitable[Outcome]]


@dataclass(frozen=True)
class InteropScenario:
    """One feature, shown by a function.

    Attributes:
        feature: the id that test ids contain.
        title: the feature in words, for the compatibility page.
        needs: operations that the scenario uses; a driver whose library lacks one skips it.
    """

    feature: str
    title: str
    needs: frozenset[str]
    play: Play


SCENARIOS: Final[dict[str, InteropScenario]] = {}


def scenario(feature: str, title: str, *needs: str) -> Callable[[Play], Play]:
    """Add a scenario to ``SCENARIOS``; ``needs`` are the drivers' operations that it uses."""

    def add(play: Play) -> Play:
        assert feature not in SCENARIOS, f"{feature} is there already"
        SCENARIOS[feature] = InteropScenario(feature, title, frozenset(needs), play)
        return play

    return add
