"""A search for messages stops asking a broker that hangs, and goes on with the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rewindmq import AdminClient, MessageQueue
from rewindmq.dashboard.data.answer import LIMIT_SECONDS, Answer
from rewindmq.dashboard.data.cluster_source import ClusterSource
from rewindmq.dashboard.data.messages import MAX_QUESTIONS, PAGE_MESSAGES, FoundMessages, since
from rewindmq.protocol.body.stats import TopicOffset, TopicStatsTable
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.offset import SearchOffsetRequestHeader, SearchOffsetResponseHeader
from rewindmq.protocol.header.pull import PullMessageRequestHeader
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.race.sim import World
from tests.client.client_records import record
from tests.client.scripted_broker import pull_answer
from tests.dashboard.scripted import Answering, Answers, Scripted, name_server, scripted, silent

# As many queues took the page 500 s.
MANY = 2000


class Searched(NamedTuple):
    """What a search found, how many seconds it took, and what each broker was asked for."""

    answer: Answer[FoundMessages]
    seconds: float
    seen: dict[str, list[int]]

    @property
    def found(self) -> FoundMessages:
        assert self.answer.value is not None
        return self.answer.value


def _stats(name: str, queues: int) -> Answering:
    table = {MessageQueue("T", name, queue): TopicOffset(0, 1, 1000) for queue in range(queues)}
    return lambda connection, request: RemotingCommand(ResponseCode.SUCCESS, None, TopicStatsTable(table))


def _place(connection: Connection, request: RemotingCommand) -> RemotingCommand:
    request.decode_header(SearchOffsetRequestHeader)
    return RemotingCommand(ResponseCode.SUCCESS, SearchOffsetResponseHeader(0))


def _one_message(connection: Connection, request: RemotingCommand) -> RemotingCommand:
    queue = request.decode_header(PullMessageRequestHeader).queue_id
    return pull_answer(ResponseCode.SUCCESS, 1, record(0, queue_id=queue, stored_at=1000))


def _refusal(connection: Connection, request: RemotingCommand) -> RemotingCommand:
    return RemotingCommand(ResponseCode.NO_PERMISSION, remark="not\nreadable")


ALIVE: Answers = {
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: _place,
    RequestCode.PULL_MESSAGE: _one_message,
}


def search(brokers: Mapping[str, Answers], queues: int) -> Searched:
    """Search a topic with so many queues at each broker, under virtual time."""
    world = World()

    async def main() -> Searched:
        return await _search(world, brokers, queues, {})

    return world.run(main())


async def _search(
    world: World, brokers: Mapping[str, Answers], queues: int, running: dict[str, Scripted]
) -> Searched:
    if len(running) < len(brokers):
        name = [*brokers][len(running)]
        answers = {RequestCode.GET_TOPIC_STATS_INFO: _stats(name, queues), **brokers[name]}
        async with scripted(world.runtime(name), name, answers) as server:
            return await _search(world, brokers, queues, running | {name: server})
    addresses = {name: server.address for name, server in running.items()}
    async with (
        scripted(world.runtime("n"), "n", name_server(addresses, queues)) as namesrv,
        AdminClient(namesrv.address, runtime=world.runtime("d")) as admin,
    ):
        began = world.now
        answer = await since(ClusterSource(admin), "T", 1000)
        return Searched(answer, world.now - began, {name: each.seen for name, each in running.items()})


def test_a_broker_that_hangs_with_2000_queues_is_named_after_2_s_and_the_other_is_searched() -> None:
    hanging: Answers = {RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: silent}
    done = search({"alive": ALIVE, "hanging": hanging}, MANY)
    assert LIMIT_SECONDS <= done.seconds < LIMIT_SECONDS + 0.5
    assert done.found.problems == {"hanging": "no answer within 2 s"}
    assert {message.broker_name for message in done.found.messages} == {"alive"}
    assert done.seen["hanging"].count(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP) <= MAX_QUESTIONS
    assert done.seen["alive"].count(RequestCode.PULL_MESSAGE) == MANY


def test_several_brokers_that_hang_take_no_longer_than_one() -> None:
    hanging: Answers = {RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: _place, RequestCode.PULL_MESSAGE: silent}
    done = search({"a": hanging, "b": hanging, "c": hanging, "d": ALIVE}, 100)
    assert done.seconds < LIMIT_SECONDS + 0.5
    assert done.found.problems.keys() == {"a", "b", "c"}
    assert done.found.messages


def test_a_refusal_is_about_one_queue_and_the_search_goes_on() -> None:
    refused: Answers = {**ALIVE, RequestCode.PULL_MESSAGE: _refuses_queue_0}
    done = search({"a": refused}, 100)
    assert len(done.found.messages) == PAGE_MESSAGES
    assert done.seen["a"].count(RequestCode.PULL_MESSAGE) == 100
    assert "not" in done.found.problems["a"]


def _refuses_queue_0(connection: Connection, request: RemotingCommand) -> RemotingCommand:
    is_first = request.decode_header(PullMessageRequestHeader).queue_id == 0
    return (_refusal if is_first else _one_message)(connection, request)
