"""The list of topics asks the name server for both of its parts at the same time."""

from __future__ import annotations

from rewindmq.protocol.body.topic_list import TopicList
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.runtime import system_runtime
from tests.dashboard.scripted import Answers, name_server, scripted, success
from tests.dashboard.site import Answered, dashboard

LIST, OWN = RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, RequestCode.GET_BROKER_CLUSTER_INFO


async def _topics(answers: Answers) -> Answered:
    async with (
        scripted(system_runtime(), "127.0.0.1", {**name_server({}), **answers}) as server,
        dashboard(server.address) as site,
    ):
        return await site.get("/topics")


async def test_the_names_and_the_brokers_own_topics_are_asked_for_at_the_same_time() -> None:
    waiting: list[tuple[Connection, RemotingCommand]] = []

    def names(connection: Connection, request: RemotingCommand) -> None:
        waiting.append((connection, request))

    def own(connection: Connection, request: RemotingCommand) -> RemotingCommand:
        # Only now does the other question get its answer.
        asker, question = waiting.pop()
        asker.reply(question, success(TopicList(["orders"])))
        return RemotingCommand(ResponseCode.SYSTEM_BUSY, remark="[REJECTREQUEST]system busy\ntry later.")

    page = await _topics({LIST: names, OWN: own})
    assert 'href="/topics/orders"' in page.text
    assert "Topics of the brokers themselves may be among these. The name server refused:" in page.text
    assert "SYSTEM_BUSY (2): [REJECTREQUEST]system busy try later." in page.text


async def test_a_name_server_that_refuses_the_names_is_not_called_silent() -> None:
    page = await _topics({LIST: lambda _, request: RemotingCommand(ResponseCode.SYSTEM_ERROR)})
    assert "The name server refused: SYSTEM_ERROR (1)." in page.text
    assert "did not answer" not in page.text
