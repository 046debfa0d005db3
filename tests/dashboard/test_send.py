"""The dashboard sends one message, if it may, and says whether one that failed may have been stored."""

import socket
from contextlib import AsyncExitStack

import pytest

from rewindmq import LocalCluster, Message, TopicConfig
from rewindmq.dashboard.web.page import DashboardSettings
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.runtime import system_runtime
from tests.dashboard.scripted import Answering, Answers, name_server, scripted
from tests.dashboard.site import HOSTS, Answered, dashboard

FIELDS = {"csrf": "form-token", "body": "<b>Ä\n2</b>", "tag": "t", "keys": "k1 k2"}


async def test_a_form_sends_one_message_and_leads_to_it(cluster: LocalCluster) -> None:
    async with cluster.producer("p") as producer:
        await producer.send(Message("Sent", b"first"))
    async with dashboard(cluster.namesrv_address) as site:
        assert 'name="csrf" value="form-token"' in (await site.get("/topics/Sent/send")).text
        assert (await site.post("/topics/Sent/send", FIELDS | {"csrf": "guessed"})).status == 403
        answered = await site.post("/topics/Sent/send", FIELDS)
        assert answered.status == 303
        page = (await site.get(answered.headers["location"])).text
        assert "&lt;b&gt;Ä\n2&lt;/b&gt;" in page
        assert '<th scope="row">KEYS</th><td class="wrap">k1 k2</td>' in page
        found = await site.get("/topics/Sent/messages?by=key&q=k2")
        assert found.text.count("/topics/Sent/messages/broker-") == 1


async def test_a_topic_that_does_not_exist_is_not_created_by_a_send(cluster: LocalCluster) -> None:
    async with dashboard(cluster.namesrv_address) as site, cluster.admin() as admin:
        answered = await site.post("/topics/Mistyped/send", FIELDS)
        assert "Nothing was sent: no broker has this topic." in answered.text
        assert answered.status == 404
        assert "k1 k2" in answered.text
        assert "Mistyped" not in await admin.topics.fetch_all_topic_list()


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"body": ""}, "length is zero"),
        ({"body": "x" * (4 << 20) + "x"}, "over max value"),
        ({"tag": "a\x01b"}, "TAGS"),
    ],
)
async def test_a_message_that_the_producer_refuses_was_not_sent(
    cluster: LocalCluster, fields: dict[str, str], why: str
) -> None:
    async with cluster.producer("p") as producer:
        await producer.send(Message("Sent", b"first"))
    async with dashboard(cluster.namesrv_address) as site:
        answered = await site.post("/topics/Sent/send", FIELDS | fields)
    assert "Nothing was sent: " in answered.text
    assert why in answered.text
    assert "may have been stored" not in answered.text


async def test_a_topic_that_cannot_be_written_to_gets_no_message(cluster: LocalCluster) -> None:
    async with cluster.admin() as admin:
        for broker in cluster.brokers.values():
            await admin.topics.create_and_update_topic_config(broker.address, TopicConfig("ReadOnly", perm=4))
    async with dashboard(cluster.namesrv_address) as site:
        answered = await site.post("/topics/ReadOnly/send", FIELDS)
    assert "Nothing was sent: No route info of this topic: ReadOnly" in answered.text


def _done(connection: Connection, request: RemotingCommand) -> RemotingCommand:
    return RemotingCommand(ResponseCode.SUCCESS)


def _close(connection: Connection, request: RemotingCommand) -> None:
    connection.close()


def _acknowledge_nothing(connection: Connection, request: RemotingCommand) -> RemotingCommand:
    return RemotingCommand(ResponseCode.SUCCESS)


def _refuse(connection: Connection, request: RemotingCommand) -> RemotingCommand:
    return RemotingCommand(ResponseCode.NO_PERMISSION, remark="the broker is forbidden\nsee its manual")


def _broker(answer: Answering) -> Answers:
    """Return the answers of a broker that gives this one to a send."""
    return {
        RequestCode.HEART_BEAT: _done,
        RequestCode.UNREGISTER_CLIENT: _done,
        RequestCode.SEND_MESSAGE_V2: answer,
    }


async def _sent_to(broker: Answers | None) -> Answered:
    """Send to a topic of a broker that gives these answers; None: no process is at its address."""
    async with AsyncExitStack() as stack:
        address = ""
        if broker is None:
            with socket.create_server(("127.0.0.1", 0)) as gone:
                address = f"127.0.0.1:{gone.getsockname()[1]}"
        else:
            served = await stack.enter_async_context(scripted(system_runtime(), "127.0.0.1", broker))
            address = served.address
        answers = name_server({"b": address})
        namesrv = await stack.enter_async_context(scripted(system_runtime(), "127.0.0.1", answers))
        site = await stack.enter_async_context(dashboard(namesrv.address))
        return await site.post("/topics/T/send", FIELDS)


async def test_a_message_to_a_broker_that_cannot_be_reached_was_not_sent() -> None:
    answered = await _sent_to(None)
    assert "Nothing was sent: connect to 127.0.0.1:" in answered.text


async def test_a_refusal_of_the_broker_is_called_so_in_one_line() -> None:
    answered = await _sent_to(_broker(_refuse))
    said = "The broker refused the message: NO_PERMISSION (16): the broker is forbidden see its manual."
    assert said in answered.text
    assert "may have been stored" not in answered.text


@pytest.mark.parametrize("answer", [_close, _acknowledge_nothing])
async def test_a_message_that_left_and_was_not_acknowledged_may_have_been_stored(answer: Answering) -> None:
    answered = await _sent_to(_broker(answer))
    assert "The message may have been stored or not: " in answered.text
    assert "&lt;b&gt;" in answered.text


async def test_a_read_only_dashboard_sends_nothing(cluster: LocalCluster) -> None:
    settings = DashboardSettings("form-token", read_only=True, hosts=HOSTS)
    async with dashboard(cluster.namesrv_address, settings) as site:
        page = await site.get("/topics/Sent/send")
        assert "<textarea" not in page.text
        assert (await site.post("/topics/Sent/send", FIELDS)).status == 403
