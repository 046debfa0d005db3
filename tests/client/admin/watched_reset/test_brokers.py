"""A watch asks servers that fail or hang seldom: each question to one that hangs costs seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from rewindmq import AdminClient, MessageQueue
from rewindmq.client.admin.watched_reset.brokers import Brokers
from rewindmq.protocol.body.connection import Connection, ConsumerConnection
from rewindmq.protocol.body.stats import BrokerStatsData, BrokerStatsItem, ConsumeStats, OffsetWrapper
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RemotingError
from rewindmq.race.sim import World
from rewindmq.watch.evidence.sample import Fetched
from rewindmq.watch.rules.minute import CountSpan
from tests.dashboard.scripted import Answering, Answers, Scripted, name_server, scripted, silent, success

QUEUE = MessageQueue("T", "b", 0)


def offsets(_connection: object, _request: RemotingCommand) -> RemotingCommand:
    return success(ConsumeStats({QUEUE: OffsetWrapper(9, 4, 1)}))


def consumers(*client_ids: str) -> Answering:
    clients = [Connection(client_id, "c:1") for client_id in client_ids]
    return lambda _connection, _request: success(ConsumerConnection(clients))


class Watched:
    """A name server, the brokers ``a`` and ``b``, and what a watch asks them under virtual time."""

    def __init__(self, world: World, servers: dict[str, Scripted], admin: AdminClient) -> None:
        self.world = world
        self.servers = servers
        self.admin = admin
        self.brokers = Brokers(admin)

    def asked(self, name: str, code: RequestCode) -> int:
        """Return how often the server was asked."""
        return self.servers[name].seen.count(code)


def play(a: Answers, b: Answers, work: Callable[[Watched], Awaitable[None]]) -> None:
    world = World()

    async def main() -> None:
        async with (
            scripted(world.runtime("a"), "a", a) as first,
            scripted(world.runtime("b"), "b", b) as second,
            scripted(
                world.runtime("n"), "n", name_server({"a": first.address, "b": second.address})
            ) as namesrv,
            AdminClient(namesrv.address, runtime=world.runtime("watch")) as admin,
        ):
            await work(Watched(world, {"a": first, "b": second, "n": namesrv}, admin))

    world.run(main())


def test_the_offsets_of_a_broker_that_hangs_are_asked_for_every_10_s() -> None:
    async def work(watched: Watched) -> None:
        for _ in range(20):
            assert list(await watched.brokers.offsets_of("G", "T")) == [QUEUE]
            await watched.world.sleep(0.5)
        # The first question took 5 s, and 9.5 s have passed since.
        assert watched.asked("a", RequestCode.GET_CONSUME_STATS) == 1
        assert watched.asked("b", RequestCode.GET_CONSUME_STATS) == 20
        await watched.world.sleep(1)
        await watched.brokers.offsets_of("G", "T")
        assert watched.asked("a", RequestCode.GET_CONSUME_STATS) == 2

    play({RequestCode.GET_CONSUME_STATS: silent}, {RequestCode.GET_CONSUME_STATS: offsets}, work)


def test_a_broker_that_hung_is_asked_last_for_the_consumers_until_it_knows_them_again() -> None:
    """Consumers tell a restarted broker of themselves within 30 s. Before, its list may be short."""
    code = RequestCode.GET_CONSUMER_CONNECTION_LIST
    answers: list[Answering] = [silent, consumers("C1"), consumers("C1", "C2")]

    def first(connection: Any, request: RemotingCommand) -> RemotingCommand | None:
        return answers.pop(0)(connection, request)

    async def listed(watched: Watched) -> list[str]:
        found = await watched.brokers.consumers_of("G")
        assert found is not None
        return [client.client_id for client in found.connection_set]

    async def work(watched: Watched) -> None:
        for _ in range(4):
            assert await listed(watched) == ["C1", "C2"]
            await watched.world.sleep(8)
        assert (watched.asked("a", code), watched.asked("b", code)) == (1, 4)
        await watched.world.sleep(8)
        assert await listed(watched) == ["C1"]
        assert (watched.asked("a", code), watched.asked("b", code)) == (2, 4)

    play({code: first}, {code: consumers("C1", "C2")}, work)


def counting(*minutes: tuple[int, float]) -> Answering:
    """Tell one sum and length of a minute after the other."""
    left = list(minutes)

    def answer(_connection: object, _request: RemotingCommand) -> RemotingCommand:
        messages, seconds = left.pop(0) if len(left) > 1 else left[0]
        return success(BrokerStatsData(BrokerStatsItem(messages, messages / seconds)))

    return answer


def test_a_count_is_another_one_if_its_sum_or_its_length_differs() -> None:
    async def work(watched: Watched) -> None:
        brokers, seen = watched.brokers, []
        await brokers.offsets_of("G", "T")
        for _ in range(4):
            seen.append((await brokers.fetched("G", "T", {"a"}))["a"])
            await watched.world.sleep(1)
        assert [each.seconds for each in seen] == [60.0, 60.0, 60.004, 60.004]
        assert [each.after for each in seen] == [None, None, seen[1].asked, seen[2].asked]
        assert [each.messages for each in seen] == [700, 700, 700, 701]

    told = counting((700, 60.0), (700, 60.0), (700, 60.004), (701, 60.004))
    answers: Answers = {
        RequestCode.GET_CONSUME_STATS: offsets,
        RequestCode.VIEW_BROKER_STATS_DATA: told,
    }
    play(answers, {RequestCode.GET_CONSUME_STATS: offsets}, work)


def test_a_count_that_is_expected_is_asked_for_until_it_comes_and_the_ends_right_after_it() -> None:
    async def work(watched: Watched) -> None:
        brokers = watched.brokers
        await brokers.offsets_of("G", "T")
        await brokers.fetched("G", "T", {"a"})
        # The count of 20 s ago is an older one.
        await watched.world.sleep(20)
        now = watched.admin.runtime.clock.monotonic()
        await brokers.count_closely("G", "T", {"a": CountSpan(now + 1, now + 2)})
        told: Fetched = (await brokers.fetched("G", "T", set()))["a"]
        assert told.messages == 9
        assert told.ends == {0: 9}
        assert told.after is not None
        assert now + 1 < told.after < told.asked < told.after + 0.1
        assert watched.asked("a", RequestCode.VIEW_BROKER_STATS_DATA) == 5
        assert watched.asked("a", RequestCode.GET_CONSUME_STATS) == 3

    told = counting((7, 60.0), (8, 60.0), (8, 60.0), (8, 60.0), (9, 60.0))
    answers: Answers = {
        RequestCode.GET_CONSUME_STATS: offsets,
        RequestCode.VIEW_BROKER_STATS_DATA: told,
    }
    play(answers, {RequestCode.GET_CONSUME_STATS: offsets}, work)


def test_questions_at_the_same_time_share_the_failure_of_a_name_server() -> None:
    world = World()

    async def main() -> None:
        answers: Answers = {RequestCode.GET_ROUTEINFO_BY_TOPIC: silent}
        async with (
            scripted(world.runtime("n"), "n", answers) as namesrv,
            AdminClient(namesrv.address, runtime=world.runtime("watch")) as admin,
        ):
            brokers = Brokers(admin)
            began = world.now
            found = await asyncio.gather(
                *(brokers.routes.brokers_of("T") for _ in range(200)), return_exceptions=True
            )
            assert all(isinstance(each, RemotingError) for each in found)
            once = world.now - began
            asked = len(namesrv.seen)
            with pytest.raises(RemotingError):
                await brokers.routes.brokers_of("T")
            assert (len(namesrv.seen), world.now - began) == (asked, once)
            brokers.routes.forget()
            with pytest.raises(RemotingError):
                await brokers.routes.brokers_of("T")
            assert len(namesrv.seen) == 2 * asked
            assert world.now - began == pytest.approx(2 * once, rel=0.1)

    world.run(main())
