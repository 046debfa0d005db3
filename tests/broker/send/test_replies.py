"""SEND_REPLY_MESSAGE (324) and its V2 (325): the push to the requester, its answers, the store."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from rewindmq.broker.send import reply_sender
from rewindmq.protocol.body.kv import KVTable
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.errors import ConnectionLostError
from rewindmq.protocol.header.client import UnregisterClientRequestHeader
from rewindmq.protocol.header.send import (
    ReplyMessageRequestHeader,
    SendMessageRequestHeader,
    SendMessageResponseHeader,
)
from rewindmq.protocol.message.properties import parse_properties
from rewindmq.protocol.message.record import decode_records
from rewindmq.protocol.message.sysflag import MessageSysFlag
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.connection import Connection
from tests.support.answers import body_of, remark_of
from tests.support.fixtures import RunScenario, simulated
from tests.support.peer import Peer
from tests.support.stage import ServerStage, SimStage

REPLIES = "DefaultCluster_REPLY_TOPIC"
V1, V2 = RequestCode.SEND_REPLY_MESSAGE, RequestCode.SEND_REPLY_MESSAGE_V2
PUSH = RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT


def never_answers() -> None:
    """The answer of a client that never answers."""


class Requester:
    """A producer that answers pushed replies, and records them."""

    def __init__(self, answer: Callable[[], Any] = lambda: RemotingCommand(0)) -> None:
        self.pushed: list[RemotingCommand] = []
        self._answer = answer

    def handle(self, connection: Connection, request: RemotingCommand) -> Any:
        self.pushed.append(request)
        return self._answer()

    async def join(self, stage: ServerStage, client_id: str = "asker", **options: Any) -> Peer:
        peer = stage.peer(client_id, answers={PUSH: self.handle}, **options)
        (await peer.heartbeat("", producers=["Askers"])).require_success()
        return peer


def properties(client_id: str | None = "asker", **others: str) -> dict[str, str]:
    to = {} if client_id is None else {"REPLY_TO_CLIENT": client_id}
    return {"MSG_TYPE": "reply", "CORRELATION_ID": "c-1", **to, "TTL": "3000", **others}


async def reply(peer: Peer, body: bytes = b"pong", **options: Any) -> RemotingCommand:
    given = {"topic": REPLIES, "code": V2, "properties": properties(), **options}
    return await peer.send(body=body, **given)


async def stored(peer: Peer, topic: str = REPLIES) -> list[Any]:
    return decode_records(body_of((await peer.pull(0, topic, group="Readers")).require_success()))


# The push.


@pytest.mark.parametrize("profile", [Profile.V49, Profile.V53])
@pytest.mark.parametrize("serialize_type", list(SerializeType))
async def test_a_reply_reaches_its_requester_and_is_stored(
    stage: ServerStage, profile: Profile, serialize_type: SerializeType
) -> None:
    await stage.start_broker(profile=profile)
    requester = Requester()
    await requester.join(stage, serialize_type=serialize_type)
    answerer = stage.peer("answerer")
    answer = (await reply(answerer, flag=7, born_timestamp=5)).require_success()
    header = answer.decode_header(SendMessageResponseHeader)
    assert (header.queue_id, header.queue_offset, len(header.msg_id)) == (0, 0, 32)
    assert (header.msg_region, header.trace_on) == ("DefaultRegion", True)
    (pushed,) = requester.pushed
    assert pushed.serialize_type == serialize_type
    assert pushed.body == b"pong"
    told = pushed.decode_header(ReplyMessageRequestHeader)
    assert (told.producer_group, told.topic, told.queue_id, told.flag) == ("PG", REPLIES, 0, 7)
    assert (told.born_timestamp, told.store_host) == (5, stage.broker.address)
    assert told.born_host.startswith("127.0.0.1:")
    given = parse_properties(told.properties or "")
    assert given.pop("PUSH_REPLY_TIME") == str(told.store_timestamp)
    of_broker = {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"} if profile is Profile.V53 else {}
    assert given == properties() | of_broker
    (message,) = await stored(answerer)
    assert (message.body, message.flag, message.properties) == (b"pong", 7, properties() | of_broker)


async def test_the_long_field_names_of_324_do_the_same(stage: ServerStage) -> None:
    await stage.start_broker()
    requester = Requester()
    await requester.join(stage)
    text = "".join(f"{name}\x01{value}\x02" for name, value in properties().items())
    header = SendMessageRequestHeader("PG", REPLIES, "TBW102", 4, -1, 0, 1, 0, text)
    answer = (await stage.peer("answerer").ask(V1, header, b"long")).require_success()
    assert answer.decode_header(SendMessageResponseHeader).queue_id == 0
    (pushed,) = requester.pushed
    assert (pushed.body, pushed.decode_header(ReplyMessageRequestHeader).queue_id) == (b"long", -1)


@simulated(profile=Profile.V42)
async def test_under_v42_both_requests_are_unknown(stage: SimStage) -> None:
    for code in (V1, V2):
        answer = await reply(stage.peer(), code=code)
        expected = (ResponseCode.REQUEST_CODE_NOT_SUPPORTED, f" request type {int(code)} not supported")
        assert (answer.code, answer.remark) == expected


@simulated()
async def test_a_compressed_reply_is_pushed_and_stored_as_it_is(stage: SimStage) -> None:
    requester = Requester()
    await requester.join(stage)
    flags = int(MessageSysFlag.COMPRESSED | MessageSysFlag.TRANSACTION_PREPARED)
    answerer = stage.peer("answerer")
    (await reply(answerer, zlib.compress(b"long text"), sys_flag=flags)).require_success()
    (pushed,) = requester.pushed
    assert pushed.decode_header(ReplyMessageRequestHeader).sys_flag == flags
    assert zlib.decompress(body_of(pushed)) == b"long text"
    (message,) = await stored(answerer)
    assert (message.body, message.sys_flag) == (b"long text", int(MessageSysFlag.COMPRESSED))


@simulated()
async def test_a_oneway_reply_is_pushed_too(stage: SimStage) -> None:
    requester = Requester()
    await requester.join(stage)
    answerer = stage.peer("answerer")
    text = "".join(f"{name}\x01{value}\x02" for name, value in properties().items())
    header = SendMessageRequestHeader("PG", REPLIES, "TBW102", 4, 0, 0, 1, 0, text)
    await answerer.client.invoke_oneway(answerer.address, RemotingCommand(V1, header, b"once"), 3.0)
    await stage.until(lambda: len(requester.pushed) == 1)


# The store.


@simulated(store_reply_message_enable=False)
async def test_without_a_store_the_message_id_is_0(stage: SimStage) -> None:
    await Requester().join(stage)
    answerer = stage.peer("answerer")
    header = (await reply(answerer)).require_success().decode_header(SendMessageResponseHeader)
    assert (header.msg_id, header.queue_id, header.queue_offset) == ("0", 0, 0)
    assert (header.msg_region, header.trace_on) == ("DefaultRegion", True)
    assert stage.broker.context.store.max_offset(REPLIES, 0) == 0
    live = await answerer.ask(RequestCode.UPDATE_BROKER_CONFIG, body=b"storeReplyMessageEnable=true")
    live.require_success()
    (await reply(answerer)).require_success()
    assert stage.broker.context.store.max_offset(REPLIES, 0) == 1


@simulated()
async def test_a_reply_that_cannot_be_stored_is_delivered(stage: SimStage) -> None:
    requester = Requester()
    await requester.join(stage)
    answer = await reply(stage.peer("answerer"), properties=properties(DELAY="soon"))
    assert answer.require_success().decode_header(SendMessageResponseHeader).msg_id == "0"
    assert len(requester.pushed) == 1
    assert stage.broker.context.store.max_offset(REPLIES, 0) == 0


@simulated(profile=Profile.V53)
async def test_a_stored_reply_with_a_timer_waits(stage: SimStage) -> None:
    """The push does not wait. A reply whose time is too far is not stored."""
    requester = Requester()
    await requester.join(stage)
    answerer = stage.peer("answerer")
    (await reply(answerer, properties=properties(TIMER_DELAY_SEC="3"))).require_success()
    (await reply(answerer, properties=properties(TIMER_DELAY_SEC="999999"))).require_success()
    assert len(requester.pushed) == 2
    assert stage.broker.context.store.max_offset(REPLIES, 0) == 0
    await stage.at(30.0)
    assert stage.broker.context.store.max_offset(REPLIES, 0) == 1


@simulated()
async def test_the_topic_of_a_stored_reply_is_created_like_that_of_a_send(stage: SimStage) -> None:
    await Requester().join(stage)
    answerer = stage.peer("answerer")
    (await reply(answerer, topic="Fresh", queue_id=3)).require_success()
    assert stage.broker.context.store.max_offset("Fresh", 3) == 1
    assert stage.broker.context.tables.topics.is_saved("Fresh")


# Replies that reach nobody.


@pytest.mark.parametrize(
    ("client_id", "remark"),
    [
        ("nobody", "push reply message fail, channel of <nobody> not found."),
        (None, "reply message properties[REPLY_TO_CLIENT] is null"),
    ],
)
@pytest.mark.parametrize("is_stored", [True, False])
def test_a_reply_to_nobody_fails_and_is_stored_all_the_same(
    simulate: RunScenario, client_id: str | None, remark: str, is_stored: bool
) -> None:
    async def scenario(stage: SimStage) -> None:
        answer = await reply(stage.peer(), properties=properties(client_id))
        assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, remark)
        assert str(answer.all_ext_fields()["TRACE_ON"]).lower() == "true"
        assert ("msgId" in answer.all_ext_fields()) == is_stored
        assert stage.broker.context.store.max_offset(REPLIES, 0) == int(is_stored)

    simulate(scenario, store_reply_message_enable=is_stored)


@simulated()
async def test_a_consumer_with_the_client_id_is_no_requester(stage: SimStage) -> None:
    await stage.peer("asker").heartbeat("G")
    assert remark_of(await reply(stage.peer())).endswith("channel of <asker> not found.")


@simulated()
async def test_a_requester_that_refuses_the_reply(stage: SimStage) -> None:
    await Requester(lambda: RemotingCommand(1, remark="process reply message fail")).join(stage)
    answer = await reply(stage.peer())
    assert (answer.code, answer.remark) == (1, "push reply message to askerfail.")


@simulated()
async def test_a_silent_requester_ends_the_wait_after_10_seconds(stage: SimStage) -> None:
    await Requester(never_answers).join(stage)
    began = stage.world.now
    answer = await reply(stage.peer())
    assert (answer.code, answer.remark) == (1, "push reply message to askerfail.")
    assert 10.0 <= stage.world.now - began < 10.1


@simulated()
async def test_a_requester_that_disconnects_ends_the_wait(stage: SimStage) -> None:
    requester = Requester(never_answers)
    asker = await requester.join(stage)
    answer = asyncio.ensure_future(reply(stage.peer()))
    await stage.until(lambda: len(requester.pushed) == 1)
    await asker.client.close()
    assert remark_of(await answer) == "push reply message to askerfail."
    assert remark_of(await reply(stage.peer())).endswith("channel of <asker> not found.")
    assert stage.broker.context.sends.replies.waiting.used == 0


@simulated()
async def test_the_newest_connection_of_a_client_id_gets_the_reply(stage: SimStage) -> None:
    old, new = Requester(), Requester()
    await old.join(stage)
    second = await new.join(stage)
    (await reply(stage.peer())).require_success()
    assert (len(old.pushed), len(new.pushed)) == (0, 1)
    await second.client.close()
    await stage.at(1.0)
    (await reply(stage.peer())).require_success()
    assert (len(old.pushed), len(new.pushed)) == (1, 1)


@simulated()
async def test_a_client_that_leaves_one_group_stays_reachable(stage: SimStage) -> None:
    asker = await Requester().join(stage)
    await asker.heartbeat("", producers=["Askers", "Others"])

    async def leave(group: str) -> None:
        header = UnregisterClientRequestHeader("asker", group, None)
        (await asker.ask(RequestCode.UNREGISTER_CLIENT, header)).require_success()

    await leave("Others")
    (await reply(stage.peer())).require_success()
    await leave("Askers")
    assert (await reply(stage.peer())).code == 1


@simulated()
async def test_a_connection_that_changes_its_client_id_is_found_by_the_new_one(stage: SimStage) -> None:
    asker = await Requester().join(stage)
    asker.client_id = "renamed"
    await asker.heartbeat("", producers=["Askers"])
    assert (await reply(stage.peer())).code == 1
    (await reply(stage.peer(), properties=properties("renamed"))).require_success()


# The checks of a send.


@pytest.mark.parametrize(
    ("changes", "code", "remark"),
    [
        ({"topic": "SCHEDULE_TOPIC_XXXX"}, 16, "Sending message to topic[SCHEDULE_TOPIC_XXXX] is forbidden."),
        ({"topic": "not legal!"}, 1, "illegal characters"),
        ({"queue_id": 9}, 1, "request queueId[9] is illegal"),
        ({"topic": "Fresh", "default_topic": "Missing"}, 17, "topic[Fresh] not exist"),
    ],
)
@simulated()
async def test_a_reply_is_checked_like_a_send(
    stage: SimStage, changes: dict[str, Any], code: int, remark: str
) -> None:
    requester = Requester()
    await requester.join(stage)
    answer = await reply(stage.peer(), **changes)
    assert answer.code == code
    assert remark in remark_of(answer)
    assert "TRACE_ON" in answer.ext
    assert requester.pushed == []


@simulated()
async def test_an_incomplete_header_is_refused(stage: SimStage) -> None:
    for code in (V1, V2):
        answer = await stage.peer().ask(code, topic="T")
        assert answer.code == 1
        assert "TRACE_ON" in answer.ext


# The limits.


def test_waiting_replies_are_limited_in_all(simulate: RunScenario) -> None:
    async def used(peer: Peer) -> str:
        answer = await peer.ask(RequestCode.GET_BROKER_RUNTIME_INFO)
        return decode_body(answer.require_success(), KVTable).table["usageWaitingReplies"]

    async def scenario(stage: SimStage) -> None:
        requester = Requester(never_answers)
        await requester.join(stage)
        waiting = [asyncio.ensure_future(reply(stage.peer())) for _ in range(2)]
        await stage.until(lambda: len(requester.pushed) == 2)
        other = stage.peer()
        assert await used(other) == "2/2"
        answer = await reply(other)
        assert (answer.code, answer.remark) == (2, "there are 2 waiting replies already, of 2")
        assert len(requester.pushed) == 2
        for task in waiting:
            assert (await task).code == 1
        assert await used(other) == "0/2"
        last = asyncio.ensure_future(reply(other))
        await stage.until(lambda: len(requester.pushed) == 3)
        assert (await last).code == 1

    simulate(scenario, reply_thread_pool_queue_capacity=2)


def test_waiting_replies_are_limited_for_each_connection(
    simulate: RunScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reply_sender, "MAX_WAITING_REPLIES_PER_CONNECTION", 2)

    async def scenario(stage: SimStage) -> None:
        requester = Requester(never_answers)
        await requester.join(stage)
        busy = stage.peer()
        waiting = [asyncio.ensure_future(reply(busy)) for _ in range(2)]
        await stage.until(lambda: len(requester.pushed) == 2)
        answer = await reply(busy)
        assert (answer.code, answer.remark) == (2, "this connection has 2 waiting replies already, of 2")
        other = asyncio.ensure_future(reply(stage.peer()))
        await stage.until(lambda: len(requester.pushed) == 3)
        # An answerer that leaves keeps its place until the requester answers or the time is over.
        await busy.client.close()
        left = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(error) for error in left] == [ConnectionLostError] * 2
        assert stage.broker.context.sends.replies.waiting.used == 3
        assert (await other).code == 1
        assert stage.broker.context.sends.replies.waiting.used == 0

    simulate(scenario)


@simulated()
async def test_a_waiting_reply_holds_no_message(stage: SimStage) -> None:
    """Only the frame that the requester has not read yet holds the body."""
    requester = Requester(never_answers)
    await requester.join(stage)
    peer = stage.peer()
    waiting = [asyncio.ensure_future(reply(peer, bytes(4 << 20))) for _ in range(9)]
    await stage.until(lambda: len(requester.pushed) == 9)
    # 36 MiB are above the 32 MiB for the requests in progress of a connection.
    last = await reply(peer, properties=properties(None))
    assert "is null" in remark_of(last)
    for task in waiting:
        assert (await task).code == 1
