"""Requests that a broker forwards to clients: 307, 309, and 221 for 223; invalid and missing responses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewindmq.broker.handlers import invoke_broker_to_get_consumer_status
from rewindmq.broker.handlers.shared.client_calls import forward
from rewindmq.protocol.body.offset_table import GetConsumerStatusBody
from rewindmq.protocol.body.running_info import (
    CMResult,
    ConsumeMessageDirectlyResult,
    ConsumerRunningInfo,
    ProcessQueueInfo,
)
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.codec.body import decode_body, encode_body
from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.client import GetConsumerRunningInfoRequestHeader
from rewindmq.protocol.header.message import ConsumeMessageDirectlyResultRequestHeader
from rewindmq.protocol.header.reset import GetConsumerStatusRequestHeader
from rewindmq.protocol.message.record import decode_record
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.remoting.connection import Handler
from tests.support.answers import body_of, present, remark_of
from tests.support.fixtures import RunScenario, simulated
from tests.support.stage import ServerStage, SimStage

Q0 = MessageQueue("T", "broker-a", 0)
INFO, DIRECTLY, STATUS = (
    RequestCode.GET_CONSUMER_RUNNING_INFO,
    RequestCode.CONSUME_MESSAGE_DIRECTLY,
    RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT,
)
WIRES = list(SerializeType)


class Client:
    """Responds to forwarded requests, and records them."""

    def __init__(self, answer: Any = None) -> None:
        self.asked: list[RemotingCommand] = []
        self._answer = answer
        self.handlers: dict[int, Handler] = dict.fromkeys((INFO, DIRECTLY, STATUS), self.handle)

    def handle(self, connection: Any, request: RemotingCommand) -> Any:
        self.asked.append(request)
        return self._answer(connection) if callable(self._answer) else self._answer


def success(body: Any) -> Callable[[Any], RemotingCommand]:
    return lambda connection: RemotingCommand(0, body=body)


async def member(stage: ServerStage, client: Client, client_id: str = "c1", **options: Any) -> Any:
    peer = stage.peer(client_id, answers=client.handlers, **options)
    await peer.heartbeat()
    return peer


async def info_of(stage: ServerStage, client_id: str = "c1", **options: Any) -> RemotingCommand:
    header = GetConsumerRunningInfoRequestHeader("G", client_id, jstack_enable=True)
    return await stage.peer("admin", **options).ask(INFO, header)


# Passing on.


@pytest.mark.parametrize("theirs", WIRES)
@pytest.mark.parametrize("ours", WIRES)
async def test_a_forwarded_response_has_the_serialization_type_of_the_requester(
    stage: ServerStage, theirs: SerializeType, ours: SerializeType
) -> None:
    await stage.start_broker()
    info = ConsumerRunningInfo({"a": "b"}, mq_table={Q0: ProcessQueueInfo(commit_offset=5)}, jstack="here")
    client = Client(success(info))
    await member(stage, client, serialize_type=theirs)
    answer = (await info_of(stage, serialize_type=ours)).require_success()
    assert answer.serialize_type == ours
    assert decode_body(answer, ConsumerRunningInfo) == info
    (asked,) = client.asked
    assert asked.serialize_type == theirs
    header = asked.decode_header(GetConsumerRunningInfoRequestHeader)
    assert (header.consumer_group, header.client_id, header.jstack_enable) == ("G", "c1", True)


async def test_what_only_its_own_tools_read_is_passed_on_untouched(stage: ServerStage) -> None:
    """pyrocketmq writes its queues as ``topic@broker:queue`` (docs/spec/protocol.md 5.6)."""
    await stage.start_broker()
    body = b'{"mqTable":{"T@broker-a:0":{"commitOffset":1}},"unheardOf":[1]}'
    await member(stage, Client(success(body)), serialize_type=SerializeType.JSON)
    assert (await info_of(stage, serialize_type=SerializeType.JSON)).body == body
    answer = await info_of(stage, serialize_type=SerializeType.MSGPACK)
    assert answer.code == 1
    assert remark_of(answer).startswith("consumer <G> <c1> sent a response that does not decode: ")


@simulated()
async def test_the_message_goes_to_the_listener_as_it_is_stored(stage: SimStage) -> None:
    client = Client(success(ConsumeMessageDirectlyResult(CMResult.CR_LATER, spent_time_mills=7)))
    peer = await member(stage, client)
    sent = await peer.send(body=b"that one")
    wanted = str(sent.require_success().ext["msgId"])
    header = ConsumeMessageDirectlyResultRequestHeader("G", "c1", wanted)
    answer = await stage.peer("admin").ask(DIRECTLY, header)
    result = decode_body(answer.require_success(), ConsumeMessageDirectlyResult)
    assert (result.consume_result, result.spent_time_mills) == (CMResult.CR_LATER, 7)
    (asked,) = client.asked
    assert asked.decode_header(ConsumeMessageDirectlyResultRequestHeader).broker_name == "broker-a"
    assert decode_record(body_of(asked)).body == b"that one"


@simulated()
async def test_a_refusal_of_the_client_comes_back_as_it_is(stage: SimStage) -> None:
    await member(stage, Client(lambda connection: RemotingCommand(205, remark="not today")))
    answer = await info_of(stage)
    assert (answer.code, answer.remark) == (205, "not today")


# Clients that are unknown, too old, silent or disconnected.


@pytest.mark.parametrize(
    ("version", "code"), [(61, 1), (62, 0), (1, 1)], ids=["before 3.1.8", "3.1.8", "very old"]
)
def test_clients_older_than_3_1_8_get_no_forwarded_request(
    simulate: RunScenario, version: int, code: int
) -> None:
    async def scenario(stage: SimStage) -> None:
        client = Client(success(ConsumerRunningInfo()))
        await member(stage, client, version=version)
        answer = await info_of(stage)
        assert (answer.code, len(client.asked)) == (code, 1 - code)
        if code:
            assert "too low to finish, please upgrade it to V3_1_8_SNAPSHOT" in remark_of(answer)

    simulate(scenario)


@simulated()
async def test_a_client_that_is_not_there(stage: SimStage) -> None:
    answer = await info_of(stage)
    assert (answer.code, answer.remark) == (1, "The Consumer <G> <c1> not online")
    await member(stage, Client())
    answer = await info_of(stage, "c2")
    assert (answer.code, answer.remark) == (1, "The Consumer <G> <c2> not online")


@simulated()
async def test_a_client_that_never_responds_gives_207_after_10_s(stage: SimStage) -> None:
    await member(stage, Client())
    began = stage.runtime.clock.monotonic()
    answer = await info_of(stage)
    assert answer.code == 207
    assert remark_of(answer).startswith("consumer <G> <c1> Timeout: ")
    assert stage.runtime.clock.monotonic() - began == pytest.approx(10, abs=0.1)


@simulated()
async def test_a_client_that_dies_with_the_question_is_1_at_once(stage: SimStage) -> None:
    await member(stage, Client(lambda connection: connection.close("dying")))
    began = stage.runtime.clock.monotonic()
    answer = await info_of(stage)
    assert answer.code == 1
    assert remark_of(answer).startswith("invoke consumer <G> <c1> Exception: ")
    assert stage.runtime.clock.monotonic() - began < 1


@simulated()
async def test_of_two_connections_with_one_id_the_newer_gets_the_request(stage: SimStage) -> None:
    old, new = Client(), Client(success(ConsumerRunningInfo({"n": "2"})))
    await member(stage, old)
    await member(stage, new)
    answer = (await info_of(stage)).require_success()
    assert decode_body(answer, ConsumerRunningInfo).properties == {"n": "2"}
    assert old.asked == []


# 223.


async def status_of(stage: SimStage, client: str | None = None) -> RemotingCommand:
    header = GetConsumerStatusRequestHeader("T", "G", client)
    return await stage.peer("admin").ask(RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, header)


def standing_at(offset: int) -> Client:
    return Client(success(GetConsumerStatusBody({Q0: offset})))


def table(answer: RemotingCommand) -> dict[str, dict[MessageQueue, int]]:
    return decode_body(answer.require_success(), GetConsumerStatusBody).consumer_table


@simulated()
async def test_223_returns_the_offsets_of_all_consumers(stage: SimStage) -> None:
    first = standing_at(5)
    await member(stage, first)
    await member(stage, standing_at(7), "c2")
    assert table(await status_of(stage)) == {"c1": {Q0: 5}, "c2": {Q0: 7}}
    header = first.asked[0].decode_header(GetConsumerStatusRequestHeader)
    assert (header.topic, header.group, header.client_addr) == ("T", "G", None)


@simulated()
async def test_223_of_one_consumer_by_its_id_or_its_address(stage: SimStage) -> None:
    await member(stage, standing_at(5))
    await member(stage, standing_at(7), "c2")
    assert table(await status_of(stage, "c2")) == {"c2": {Q0: 7}}
    channel = present(stage.broker.context.clients.consumers.find_consumer("G", "c1"))
    assert table(await status_of(stage, channel.connection.remote_address)) == {"c1": {Q0: 5}}
    answer = await status_of(stage, "c3")
    assert (answer.code, answer.remark) == (1, "The Consumer <G> <c3> not online")


@simulated()
async def test_223_without_consumers_and_with_an_old_consumer(stage: SimStage) -> None:
    answer = await status_of(stage)
    assert (answer.code, answer.remark) == (1, "No Any Consumer online in the consumer group: [G]")
    await member(stage, standing_at(5))
    await member(stage, standing_at(5), "c2", version=27)
    answer = await status_of(stage)
    assert (answer.code, answer.remark) == (
        1,
        "the client does not support this feature. version=V3_0_6",
    )


@simulated()
async def test_223_omits_consumers_that_do_not_respond_within_5_s(stage: SimStage) -> None:
    await member(stage, Client(), "silent")
    await member(stage, Client(), "silent too")
    await member(stage, standing_at(5))
    began = stage.runtime.clock.monotonic()
    assert table(await status_of(stage)) == {"c1": {Q0: 5}}
    assert stage.runtime.clock.monotonic() - began == pytest.approx(5, abs=0.1)
    answer = await status_of(stage, "silent")
    assert answer.code == 207
    assert remark_of(answer).startswith("no consumer of group <G> has sent its offsets: ")


@pytest.mark.parametrize(
    "body", [b"", b"nonsense", b"[1]", b'{"messageQueueTable":{"what":1}}', b'{"messageQueueTable":7}']
)
@simulated()
async def test_223_fails_with_a_reason_if_the_only_consumer_sends_an_invalid_body(
    stage: SimStage, body: bytes
) -> None:
    await member(stage, Client(success(body)), serialize_type=SerializeType.JSON)
    answer = await status_of(stage)
    assert answer.code == 1
    assert remark_of(answer).startswith("no consumer of group <G> has sent its offsets: CODE: 1  DESC: ")


@pytest.mark.parametrize("theirs", WIRES)
def test_223_with_thousands_of_queues_lets_other_requests_pass(
    simulate: RunScenario, theirs: SerializeType
) -> None:
    offsets = {MessageQueue("T", "broker-a", queue_id): queue_id for queue_id in range(3_000)}

    async def scenario(stage: SimStage) -> None:
        await member(stage, Client(success(GetConsumerStatusBody(offsets))), serialize_type=theirs)
        bystander = stage.peer("c2")
        await bystander.heartbeat("Other")
        asked = asyncio.ensure_future(status_of(stage))
        for _ in range(3):
            await bystander.heartbeat("Other")
            assert not asked.done()
        assert table(await asked) == {"c1": offsets}

    simulate(scenario)


@pytest.mark.parametrize("theirs", [SerializeType.JSON, SerializeType.MSGPACK])
@pytest.mark.parametrize("beyond", [False, True])
def test_223_refuses_a_response_with_too_many_values(
    simulate: RunScenario, monkeypatch: pytest.MonkeyPatch, theirs: SerializeType, beyond: bool
) -> None:
    body = encode_body(GetConsumerStatusBody({Q0: 5}), theirs)
    values = {SerializeType.JSON: 11, SerializeType.MSGPACK: 8}[theirs]
    monkeypatch.setattr(invoke_broker_to_get_consumer_status, "MAX_TABLE_VALUES", values - beyond)

    async def scenario(stage: SimStage) -> None:
        await member(stage, Client(success(body)), serialize_type=theirs)
        answer = await status_of(stage)
        if beyond:
            assert answer.code == 1
            assert f"more than {values - 1} values" in remark_of(answer)
        else:
            assert table(answer) == {"c1": {Q0: 5}}

    simulate(scenario)


# Junk.


class _Junk:
    """A connection to a client that returns arbitrary responses."""

    def __init__(self, answer: RemotingCommand) -> None:
        self._answer = answer

    def invoke(self, command: RemotingCommand, timeout: float) -> asyncio.Future[RemotingCommand]:
        future: asyncio.Future[RemotingCommand] = asyncio.get_running_loop().create_future()
        future.set_result(self._answer)
        return future


class _Channel:
    def __init__(self, answer: RemotingCommand) -> None:
        self.connection = _Junk(answer)
        self.client_id = "c1"


BODIES = [b"{}", b"[]", b"null", b'{"mqTable":3}', b"\x80"]


@settings(deadline=None)
@given(
    code=st.integers(-(2**31), 2**31 - 1) | st.just(0),
    body=st.none()
    | st.binary(max_size=60)
    | st.sampled_from([b"{}", b"[]", b"null", b'{"mqTable":3}', b"\x80"]),
    theirs=st.sampled_from(WIRES),
    ours=st.sampled_from(WIRES),
    body_type=st.sampled_from([ConsumerRunningInfo, ConsumeMessageDirectlyResult]),
)
def test_the_requester_gets_a_response_whatever_the_client_returns(
    code: int, body: bytes | None, theirs: SerializeType, ours: SerializeType, body_type: Any
) -> None:
    async def run() -> tuple[int, str | None]:
        answer = RemotingCommand(code, body=body, remark="as it came", serialize_type=theirs)
        request = RemotingCommand(INFO, serialize_type=ours)
        try:
            told = await forward(_Channel(answer), "G", request, body_type)  # type: ignore[arg-type]
        except RequestError as error:
            return error.code, error.remark
        return told.code, told.remark

    told, remark = asyncio.run(run())
    if code:
        assert (told, remark) == (code, "as it came")
    elif told:
        assert told == 1
        assert remark is not None
        assert "sent a response that does not decode" in remark
