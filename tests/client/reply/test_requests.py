"""Producer.request and create_reply_message with real servers under virtual time, and their errors."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Sequence
from typing import Any

import pytest

from rewindmq import (
    ClientError,
    ConsumeConcurrentlyStatus,
    Message,
    MessageExt,
    MessageQueue,
    Producer,
    ReplyTimeoutError,
    RequestTimeoutError,
    ResponseError,
    TooManyRequestsError,
    create_reply_message,
)
from rewindmq.client.reply import pending_replies
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.send import ReplyMessageRequestHeader, SendMessageRequestHeaderV2
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.race.sim.world import EPOCH_MS
from tests.client.inbox import Inbox
from tests.client.scripted_broker import ScriptedBroker, play_scripted
from tests.support.answers import present
from tests.support.clients import OK
from tests.support.fixtures import RunScenario, played
from tests.support.stage import ServerStage, SimStage


class Answerer:
    """A listener that answers each request with its body in capitals, after ``delay`` virtual seconds."""

    def __init__(self, stage: SimStage, producer: Producer, delay: float = 0.0) -> None:
        self._stage = stage
        self._producer = producer
        self._delay = delay
        self.requests: list[MessageExt] = []
        self.sent: list[Any] = []

    async def __call__(self, messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        for message in messages:
            self.requests.append(message)
            await self._stage.world.sleep(self._delay)
            reply = create_reply_message(message, message.body.upper())
            try:
                self.sent.append(await self._producer.send(reply))
            except ResponseError as error:
                self.sent.append(error)
        return OK


async def answering(stage: SimStage, delay: float = 0.0) -> Answerer:
    """An answerer that consumes T."""
    answerer = Answerer(stage, await stage.producer("Answerers"), delay)
    await stage.consume(answerer)
    return answerer


def waiting(producer: Producer) -> int:
    return len(producer.instance.replies)


@pytest.mark.parametrize("profile", [Profile.V49, Profile.V53])
@pytest.mark.parametrize("brokers", [1, 2])
@played()
async def test_a_request_returns_its_reply(stage: SimStage, profile: Profile, brokers: int) -> None:
    await stage.create_topic()
    answerer = await answering(stage)
    producer = await stage.producer()
    for number in range(8):
        message = Message("T", b"ping %d" % number, "TagA")
        reply = await producer.request(message, 5.0)
        assert reply.body == b"PING %d" % number
        assert reply.topic == "DefaultCluster_REPLY_TOPIC"
        properties = reply.properties
        assert properties["CORRELATION_ID"] == message.properties["CORRELATION_ID"]
        assert str(uuid.UUID(properties["CORRELATION_ID"], version=4)) == properties["CORRELATION_ID"]
        assert properties["REPLY_TO_CLIENT"] == producer.client_id
        assert (properties["TTL"], properties["MSG_TYPE"]) == ("5000", "reply")
        assert EPOCH_MS < int(properties["PUSH_REPLY_TIME"]) <= int(properties["ARRIVE_TIME"])
        assert reply.store_timestamp == int(properties["PUSH_REPLY_TIME"])
        assert (reply.queue_offset, reply.commit_log_offset) == (0, 0)
    assert len({message.properties["CORRELATION_ID"] for message in answerer.requests}) == 8
    assert waiting(producer) == 0


async def test_a_request_returns_its_reply_over_real_sockets(stage: ServerStage) -> None:
    await stage.start_namesrv()
    await stage.start_broker()
    await stage.peer().create_topic()
    answers, producer = await stage.producer("Answerers"), await stage.producer()

    async def answer(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        for message in messages:
            await answers.send(create_reply_message(message, message.body.upper()), timeout=30.0)
        return OK

    await stage.consume(answer)
    requests = [producer.request(Message("T", b"ping %d" % number), 60.0) for number in range(10)]
    replies = await asyncio.gather(*requests)
    assert [reply.body for reply in replies] == [b"PING %d" % number for number in range(10)]
    assert waiting(producer) == 0


@played()
async def test_replies_find_their_requests_in_any_order(stage: SimStage) -> None:
    await stage.create_topic()
    await answering(stage)
    producer, other = await stage.producer(), await stage.producer("Others")
    bodies = [b"body %d" % number for number in range(40)]
    replies = await asyncio.gather(
        *((producer, other)[number % 2].request(Message("T", body)) for number, body in enumerate(bodies))
    )
    assert [reply.body for reply in replies] == [body.upper() for body in bodies]


@played()
async def test_one_message_object_may_be_requested_again_at_once(stage: SimStage) -> None:
    await stage.create_topic()
    await answering(stage)
    producer = await stage.producer()
    message = Message("T", b"twice")
    first, second = await asyncio.gather(producer.request(message), producer.request(message))
    assert first.properties["CORRELATION_ID"] != second.properties["CORRELATION_ID"]


@played()
async def test_large_requests_and_replies_are_compressed_on_the_way(stage: SimStage) -> None:
    await stage.create_topic()
    await answering(stage)
    producer = await stage.producer()
    reply = await producer.request(Message("T", b"x" * 100_000))
    assert len(reply.stored_body) < 1_000
    assert reply.body == b"X" * 100_000


@played()
async def test_a_request_goes_to_the_chosen_queue(stage: SimStage) -> None:
    await stage.create_topic()
    answerer = await answering(stage)
    producer = await stage.producer()
    await producer.request(Message("T", b"direct"), queue=MessageQueue("T", "broker-a", 2))

    def pick(queues: Sequence[MessageQueue], message: Message, arg: int) -> MessageQueue:
        return queues[arg]

    await producer.request_with_selector(Message("T", b"selected"), pick, 3)
    assert [message.queue_id for message in answerer.requests] == [2, 3]
    with pytest.raises(ClientError, match="select message queue threw exception"):
        await producer.request_with_selector(Message("T", b"x"), pick, 99)
    assert waiting(producer) == 0


# No reply in time.


@played()
async def test_a_request_without_a_reply_times_out(stage: SimStage) -> None:
    await stage.create_topic()
    producer = await stage.producer()
    began = stage.world.now
    with pytest.raises(ReplyTimeoutError) as caught:
        await producer.request(Message("T", b"x"), timeout=7.5)
    assert 7.5 <= stage.world.now - began < 7.6
    expected = "send request message to <T> OK, but wait reply message timeout, 7500 ms."
    assert (str(caught.value), caught.value.code) == (expected, 10_006)
    assert isinstance(caught.value, ClientError)
    assert isinstance(caught.value, RequestTimeoutError)
    assert waiting(producer) == 0


@played()
async def test_a_late_reply_is_acknowledged_and_dropped(
    stage: SimStage, caplog: pytest.LogCaptureFixture
) -> None:
    await stage.create_topic()
    answerer = await answering(stage, delay=5.0)
    producer = await stage.producer()
    with pytest.raises(ReplyTimeoutError):
        await producer.request(Message("T", b"x"), timeout=3.0)
    with caplog.at_level(logging.WARNING):
        await stage.until(lambda: len(answerer.sent) == 1)
    assert answerer.sent[0].status == "SEND_OK"
    assert "receive reply message, but not matched any request" in caplog.text
    assert (await producer.request(Message("T", b"again"), timeout=6.0)).body == b"AGAIN"


@played()
async def test_a_reply_to_a_client_that_is_gone_is_refused(stage: SimStage) -> None:
    await stage.create_topic()
    answerer = await answering(stage, delay=2.0)
    producer = await stage.producer()
    request = asyncio.ensure_future(producer.request(Message("T", b"x")))
    await stage.until(lambda: len(answerer.requests) == 1)
    await producer.shutdown()
    with pytest.raises(ClientError, match="the producer shut down before the reply arrived"):
        await request
    await stage.until(lambda: len(answerer.sent) == 1)
    assert isinstance(answerer.sent[0], ResponseError)
    assert answerer.sent[0].remark == (
        f"push reply message fail, channel of <{producer.client_id}> not found."
    )


@played()
async def test_a_second_reply_is_dropped(stage: SimStage) -> None:
    await stage.create_topic()
    answerer = await answering(stage)
    producer = await stage.producer()
    await producer.request(Message("T", b"x"))
    again = create_reply_message(answerer.requests[0], b"again")
    answers = await stage.producer("More")
    assert (await answers.send(again)).status == "SEND_OK"
    await answers.send_oneway(again)
    assert waiting(producer) == 0


@played()
async def test_a_broker_that_dies_while_a_request_waits(stage: SimStage) -> None:
    await stage.create_topic()
    producer = await stage.producer()
    request = asyncio.ensure_future(producer.request(Message("T", b"x"), timeout=20.0))
    await stage.world.sleep(1.0)
    await stage.brokers["broker-a"].close()
    with pytest.raises(ReplyTimeoutError):
        await request
    await stage.start_broker("broker-a")
    # The broker knows the client again after its next heartbeat.
    await stage.world.sleep(31.0)
    await answering(stage)
    assert (await producer.request(Message("T", b"back"))).body == b"BACK"


@played()
async def test_a_cancelled_request_leaves_nothing(stage: SimStage) -> None:
    await stage.create_topic()
    producer = await stage.producer()
    for delay in (0.0, 0.0005, 0.001, 0.0025, 1.0):
        request = asyncio.ensure_future(producer.request(Message("T", b"x")))
        await stage.world.sleep(delay)
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        assert waiting(producer) == 0
    await answering(stage)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001):
            await producer.request(Message("T", b"x"))
    assert (await producer.request(Message("T", b"after"))).body == b"AFTER"


@pytest.mark.parametrize("how", ["shutdown", "abort"])
@played()
async def test_a_producer_that_stops_fails_its_requests_and_no_others(stage: SimStage, how: str) -> None:
    await stage.create_topic()
    one = await stage.producer("One", instance_name="shared", host="10.0.0.77")
    two = Producer("Two", stage.namesrv, runtime=one.runtime, instance_name="shared")
    await two.start()
    requests = [
        asyncio.ensure_future(producer.request(Message("T", b"x"), 9.0)) for producer in (one, one, two)
    ]
    await stage.world.sleep(1.0)
    assert waiting(two) == 3
    if how == "shutdown":
        await one.shutdown()
    else:
        one.abort()
    for request in requests[:2]:
        with pytest.raises(ClientError, match="the producer shut down"):
            await request
    assert waiting(two) == 1
    with pytest.raises(ReplyTimeoutError):
        await requests[2]
    with pytest.raises(ClientError, match="service state not OK"):
        await one.request(Message("T", b"x"))
    await two.shutdown()


# The send.


def test_a_request_that_is_not_confirmed_in_time_is_no_reply_timeout() -> None:
    async def scene(broker: ScriptedBroker, producer: Producer) -> None:
        broker.handlers[RequestCode.SEND_MESSAGE_V2] = lambda connection, request: None
        with pytest.raises(RequestTimeoutError) as caught:
            await producer.request(Message("T", b"x"), timeout=2.0)
        assert not isinstance(caught.value, ReplyTimeoutError)
        assert len(broker.times(RequestCode.SEND_MESSAGE_V2)) == 1
        assert waiting(producer) == 0

    play_scripted(scene)


def test_the_time_limit_includes_the_heartbeats_and_the_retries() -> None:
    async def scene(broker: ScriptedBroker, producer: Producer) -> None:
        broker.handlers[RequestCode.HEART_BEAT] = lambda connection, request: None
        clock = producer.runtime.clock
        began = clock.monotonic()
        with pytest.raises(RequestTimeoutError, match="not confirmed within 500 ms"):
            await producer.request(Message("T", b"x"), timeout=0.5)
        assert clock.monotonic() - began == pytest.approx(0.5, abs=0.06)
        assert broker.times(RequestCode.SEND_MESSAGE_V2) == []

    play_scripted(scene)


def test_a_request_after_a_failed_heartbeat_sends_another() -> None:
    async def scene(broker: ScriptedBroker, producer: Producer) -> None:
        async def heartbeats() -> int:
            before = len(broker.times(RequestCode.HEART_BEAT))
            with pytest.raises(ResponseError):
                await producer.request(Message("T", b"x"))
            return len(broker.times(RequestCode.HEART_BEAT)) - before

        accept = broker.handlers[RequestCode.HEART_BEAT]
        refusal = RemotingCommand(ResponseCode.SYSTEM_ERROR, remark="no")
        broker.handlers[RequestCode.HEART_BEAT] = lambda connection, request: refusal
        broker.handlers[RequestCode.SEND_MESSAGE_V2] = lambda connection, request: refusal
        assert [await heartbeats(), await heartbeats()] == [1, 1]
        broker.handlers[RequestCode.HEART_BEAT] = accept
        assert [await heartbeats(), await heartbeats()] == [1, 0]

    play_scripted(scene)


def test_a_refused_request_fails_like_a_send() -> None:
    async def scene(broker: ScriptedBroker, producer: Producer) -> None:
        refusal = RemotingCommand(ResponseCode.MESSAGE_ILLEGAL, remark="no")
        broker.handlers[RequestCode.SEND_MESSAGE_V2] = lambda connection, request: refusal
        with pytest.raises(ResponseError, match="CODE: 13  DESC: no"):
            await producer.request(Message("T", b"x"))
        assert waiting(producer) == 0

    play_scripted(scene)


def test_a_reply_may_arrive_before_the_request_is_confirmed() -> None:
    async def scene(broker: ScriptedBroker, producer: Producer) -> None:
        def push(connection: Connection, request: RemotingCommand) -> None:
            sent = request.decode_header(SendMessageRequestHeaderV2)
            header = ReplyMessageRequestHeader(
                "P", "R", "TBW102", 4, 0, 0, 1, 0, "10.0.0.8:1", "10.0.0.9:1", 7, sent.properties
            )
            pushed = RemotingCommand(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, header, b"early")
            connection.invoke(pushed, 3.0)

        broker.handlers[RequestCode.SEND_MESSAGE_V2] = push
        reply = await producer.request(Message("T", b"x"))
        assert (reply.body, reply.born_host, reply.store_host) == (b"early", "10.0.0.8:1", "10.0.0.9:1")

    play_scripted(scene)


# Bad input.


def test_a_table_full_of_requests_refuses_more(play: RunScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending_replies, "MAX_PENDING_REPLIES", 2)

    async def scene(stage: SimStage) -> None:
        await stage.create_topic()
        producer = await stage.producer()
        requests = [asyncio.ensure_future(producer.request(Message("T", b"x"))) for _ in range(2)]
        await stage.world.sleep(0.0)
        with pytest.raises(TooManyRequestsError, match="2 requests wait for replies already"):
            await producer.request(Message("T", b"x"))
        for request in requests:
            with pytest.raises(ReplyTimeoutError):
                await request

    play(scene)


@pytest.mark.parametrize("timeout", [0, -1.0, float("nan")])
@played()
async def test_a_request_needs_a_time_limit(stage: SimStage, timeout: float) -> None:
    producer = await stage.producer()
    with pytest.raises(ClientError, match="the timeout of a request must be above 0"):
        await producer.request(Message("T", b"x"), timeout)


@pytest.mark.parametrize("body", [b"", b"x" * (4 * 1024 * 1024 + 1)])
@played()
async def test_an_invalid_message_is_refused_as_by_send(stage: SimStage, body: bytes) -> None:
    producer = await stage.producer()
    with pytest.raises(ClientError, match="message body"):
        await producer.request(Message("T", body))
    assert waiting(producer) == 0


@played(auto_create_topic_enable=False)
async def test_a_topic_without_route_fails_at_once(stage: SimStage) -> None:
    producer = await stage.producer()
    with pytest.raises(ClientError, match="No route info of this topic: Missing"):
        await producer.request(Message("Missing", b"x"))
    assert waiting(producer) == 0


@played()
async def test_a_reply_to_a_message_that_is_no_request_is_refused(stage: SimStage) -> None:
    await stage.create_topic()
    inbox = Inbox(stage.world)
    await stage.consume(inbox)
    await (await stage.producer()).send(Message("T", b"no request"))
    await stage.until(lambda: len(inbox.messages) == 1)
    with pytest.raises(ClientError, match=r"property\[REPLY_TO_CLIENT\] is null") as caught:
        create_reply_message(inbox.messages[0], b"x")
    assert str(caught.value).endswith("the message was not sent with request()")
    for wrong in ("text", None):
        with pytest.raises(ClientError):
            create_reply_message(inbox.messages[0], wrong)  # type: ignore[arg-type]


@played(profile=Profile.V42)
async def test_a_reply_at_a_broker_before_4_6_is_refused(stage: SimStage) -> None:
    await stage.create_topic()
    answerer = await answering(stage)
    producer = await stage.producer()
    with pytest.raises(ReplyTimeoutError):
        await producer.request(Message("T", b"x"))
    assert [error.code for error in answerer.sent] == [3]


@pytest.mark.parametrize("properties", [None, "", "TTL\x01 5\x02"])
@played()
async def test_a_pushed_reply_without_a_correlation_id_is_refused(
    stage: SimStage, properties: str | None
) -> None:
    producer = await stage.producer()
    await producer.send(Message("T", b"x"))
    await producer.instance.send_heartbeats()
    connection = present(stage.brokers["broker-a"].context.clients.producers.find_client(producer.client_id))
    header = ReplyMessageRequestHeader(
        "P", "T", "TBW102", 4, 0, 0, 1, 0, "nowhere", "127.0.0.1:1", 1, properties
    )
    pushed = RemotingCommand(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, header, b"x")
    answer = await connection.invoke(pushed, 3.0)
    assert (answer.code, answer.remark) == (1, "process reply message fail")
    answer = await connection.invoke(RemotingCommand(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT), 3.0)
    assert answer.code == 1
