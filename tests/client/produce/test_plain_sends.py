"""Plain sends (``client/produce/plain_sends.py``): the same requests and results as any other send."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rewindmq import Message, Producer
from rewindmq.client.produce.plain_sends import PlainSends
from rewindmq.protocol import frame
from rewindmq.protocol.body.route import BrokerData, QueueData, TopicRouteData
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.errors import RequestTimeoutError, RewindMQError
from rewindmq.protocol.header.send import SendMessageRequestHeaderV2, SendMessageResponseHeader
from rewindmq.protocol.message.properties import UNIQ_KEY
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.race.sim import World
from tests.client.scripted_broker import ScriptedBroker, play_scripted

SEND = RequestCode.SEND_MESSAGE_V2
ALL = list(Profile)

# The arguments of a message, and what the broker answers to each try.
_TEXT = st.text(max_size=8) | st.sampled_from(["TagA", "true", "\x01", "\ud800", "ä" * 9_000])
_NAMES = st.sampled_from(["TAGS", "WAIT", "KEYS", "DELAY", "MSG_TYPE", "TRAN_MSG", "own", UNIQ_KEY]) | _TEXT
_PROPERTIES: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    _NAMES, _TEXT | st.sampled_from([1, True, 1.0, "reply"]), max_size=4
)
_USUAL = st.sampled_from(
    [{"TAGS": "TagA", "WAIT": "true"}, {"WAIT": "true", "TAGS": "TagA"}, {"WAIT": "true"}]
)
_MESSAGES = st.tuples(
    _PROPERTIES | _USUAL,
    st.sampled_from(
        [b"", b"x", bytes(1024), bytes(4095), bytes(4096), bytes(5001), bytearray(b"changeable")]
    ),
    st.sampled_from([0, 0, 0, 5, -1]),
)
_ANSWERS = st.builds(
    lambda code, header, remark, extra: (code, header, remark, extra),
    st.sampled_from(
        [
            ResponseCode.SUCCESS,
            ResponseCode.SUCCESS,
            ResponseCode.SYSTEM_ERROR,
            ResponseCode.FLUSH_DISK_TIMEOUT,
            ResponseCode.MESSAGE_ILLEGAL,
        ]
    ),
    st.sampled_from(
        [
            SendMessageResponseHeader("id", 0, 7),
            SendMessageResponseHeader("id", 1, 2**40, None, "Region", True),
            SendMessageResponseHeader("id", -1, -1, "transaction"),
            SendMessageResponseHeader("i" * 1_000, 0, 7),
            None,
        ]
    ),
    st.sampled_from([None, None, "remark"]),
    st.sampled_from([None, None, "extra"]),
)


def _outcomes(
    messages: list[tuple[dict[str, Any], Any, int]],
    answers: list[Any],
    profile: Profile,
    opaque: int,
    **options: Any,
) -> tuple[list[Any], list[Any], list[Any]]:
    """Return the broker's requests, the result or error of each send, and the messages' properties."""
    requests: list[Any] = []
    outcomes: list[Any] = []
    sent: list[Message] = []

    async def scene(broker: ScriptedBroker, producer: Producer) -> None:
        left = iter(answers)

        def answer(connection: Connection, request: RemotingCommand) -> RemotingCommand:
            requests.append(
                (
                    *(request.language, request.version, request.opaque, request.flag, request.remark),
                    *(request.serialize_type, request.raw_ext, request.body),
                )
            )
            code, header, remark, extra = next(left, (0, SendMessageResponseHeader("last", 0, 1), None, None))
            response = RemotingCommand(code, header, remark=remark)
            if extra is not None:
                response.set_ext(extra, extra)
            return response

        # Opens the connection.
        broker.handlers[SEND] = _stored
        await producer.send(Message("T", b"first"))
        connection = producer.instance.remoting.ready_connection(broker.address)
        assert connection is not None
        connection._pending.opaque = opaque
        broker.handlers[SEND] = answer
        for properties, body, flag in messages:
            message = Message("T", b"x", flag=flag)
            message.body, message.properties = body, properties.copy()
            sent.append(message)
        outcomes.extend(
            await asyncio.gather(*(producer.send(message) for message in sent), return_exceptions=True)
        )

    play_scripted(scene, profile, **options)
    results = [repr(outcome) if isinstance(outcome, Exception) else outcome for outcome in outcomes]
    return requests, results, [message.properties for message in sent]


@example(
    messages=[
        ({"A": "1", "B": "2"}, b"x", 0),
        ({"B": "2", "A": "1"}, b"x", 0),
        ({"A": 1, "B": "2"}, b"x", 0),
    ],
    answers=[],
    profile=Profile.V49,
    opaque=1,
    retries=True,
)
@given(
    messages=st.lists(_MESSAGES, max_size=6),
    answers=st.lists(_ANSWERS, max_size=8),
    profile=st.sampled_from(ALL),
    opaque=st.sampled_from([1, 125, 253, 65_533, 100_000, 2**31 - 3]),
    retries=st.booleans(),
)
def test_requests_and_results_are_those_of_other_sends(
    messages: list[tuple[dict[str, Any], Any, int]],
    answers: list[Any],
    profile: Profile,
    opaque: int,
    retries: bool,
) -> None:
    options: dict[str, Any] = {"retry_another_broker_when_not_store_ok": retries}
    plain = _outcomes(messages, answers, profile, opaque, **options)
    with mock.patch.object(PlainSends, "begin", return_value=None):
        other = _outcomes(messages, answers, profile, opaque, **options)
    assert plain == other


def _count_plain(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Record for every send whether it is plain."""
    begin = PlainSends.begin
    seen: list[bool] = []

    def recording(self: PlainSends, message: Message, timeout: float) -> Any:
        begun = begin(self, message, timeout)
        seen.append(begun is not None)
        return begun

    monkeypatch.setattr(PlainSends, "begin", recording)
    return seen


def _stored(connection: Connection, request: RemotingCommand) -> RemotingCommand:
    header = request.decode_header(SendMessageRequestHeaderV2)
    return RemotingCommand(ResponseCode.SUCCESS, SendMessageResponseHeader("id", header.queue_id, 0))


@pytest.mark.parametrize(
    ("serialize_type", "plain"),
    [(None, [False, True, True]), (SerializeType.JSON, []), (SerializeType.ROCKETMQ, [])],
)
def test_sends_are_plain_once_the_peer_has_answered_in_msgpack(
    serialize_type: SerializeType | None, plain: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = _count_plain(monkeypatch)

    async def scene(broker: ScriptedBroker, producer: Producer) -> None:
        broker.handlers[SEND] = _stored
        for _ in range(3):
            await producer.send(Message("T", b"x", "TagA", "key"))

    play_scripted(scene, serialize_type=serialize_type)
    assert seen == plain


def test_sends_to_a_broker_without_msgpack_are_not_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = _count_plain(monkeypatch)
    monkeypatch.delitem(frame._DECODE_HEADER, SerializeType.MSGPACK)

    async def scene(broker: ScriptedBroker, producer: Producer) -> None:
        broker.handlers[SEND] = _stored
        for _ in range(6):
            await producer.send(Message("T", b"x"))
        assert {request.serialize_type for request in broker.headers(SEND)} == {SerializeType.JSON}
        queues = [
            request.decode_header(SendMessageRequestHeaderV2).queue_id for request in broker.headers(SEND)
        ]
        assert sorted(queues) == [0, 0, 0, 1, 1, 1]

    play_scripted(scene)
    assert seen == [False] * 6


def test_a_second_try_has_the_message_as_it_was_at_the_first_try(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = _count_plain(monkeypatch)

    async def scene(broker: ScriptedBroker, producer: Producer) -> None:
        broker.handlers[SEND] = _stored
        await producer.send(Message("T", b"x"))
        message = Message("T", b"before", "TagA")

        def refuse(connection: Connection, request: RemotingCommand) -> RemotingCommand:
            message.body, message.topic = b"after", "Other"
            message.properties["TAGS"] = "TagB"
            broker.handlers[SEND] = _stored
            return RemotingCommand(ResponseCode.SYSTEM_ERROR)

        broker.handlers[SEND] = refuse
        result = await producer.send(message)
        tries = broker.headers(SEND)[-2:]
        headers = [request.decode_header(SendMessageRequestHeaderV2) for request in tries]
        assert [request.body for request in tries] == [b"before"] * 2
        assert headers[0].properties == headers[1].properties
        assert f"TAGS\x01TagA\x02WAIT\x01true\x02{UNIQ_KEY}\x01{result.msg_id}" == headers[0].properties
        assert {header.topic for header in headers} == {"T"}

    play_scripted(scene)
    assert seen == [False, True]


def test_a_plain_send_that_loses_its_connection_is_tried_again() -> None:
    async def scene(broker: ScriptedBroker, producer: Producer) -> None:
        broker.handlers[SEND] = _stored
        await producer.send(Message("T", b"x"))

        def drop(connection: Connection, request: RemotingCommand) -> None:
            broker.handlers[SEND] = _stored
            connection.abort()

        broker.handlers[SEND] = drop
        result = await producer.send(Message("T", b"x"))
        requests = broker.headers(SEND)
        assert len(requests) == 3
        texts = [request.decode_header(SendMessageRequestHeaderV2).properties for request in requests[1:]]
        assert texts == [f"WAIT\x01true\x02{UNIQ_KEY}\x01{result.msg_id}"] * 2

    play_scripted(scene)


@pytest.mark.parametrize("how", ["cancelled", "timed out"])
def test_a_late_response_to_a_plain_send_is_dropped(how: str) -> None:
    async def scene(broker: ScriptedBroker, producer: Producer) -> None:
        broker.handlers[SEND] = _stored
        await producer.send(Message("T", b"x"))
        held: list[Callable[[], None]] = []
        arrived = asyncio.Event()

        def hold(connection: Connection, request: RemotingCommand) -> None:
            response = _stored(connection, request)
            held.append(lambda: connection.reply(request, response))
            arrived.set()

        broker.handlers[SEND] = hold
        sending = asyncio.ensure_future(producer.send(Message("T", b"late"), timeout=2.0))
        await arrived.wait()
        if how == "cancelled":
            sending.cancel()
        with pytest.raises(asyncio.CancelledError if how == "cancelled" else RequestTimeoutError):
            await sending
        broker.handlers[SEND] = _stored
        held[0]()
        result = await producer.send(Message("T", b"next"))
        assert result.offset_msg_id == "id"
        assert len(broker.headers(SEND)) == 3

    play_scripted(scene)


def test_a_send_follows_the_route() -> None:
    """The broker gets another address and other queues, and then it has no queue any more."""
    world = World()

    async def main() -> None:
        hosts = ["10.0.0.8", "10.0.0.9"]
        brokers = [ScriptedBroker(world.runtime(host), {"T": 1}) for host in hosts]
        route = TopicRouteData([QueueData("b", 1, 1, 6)], [BrokerData("C", "b", {})])
        for host, broker in zip(hosts, brokers, strict=True):
            await broker.start(host)
            broker.handlers[SEND] = _stored
        brokers[0].handlers[RequestCode.GET_ROUTEINFO_BY_TOPIC] = lambda connection, request: RemotingCommand(
            ResponseCode.SUCCESS, None, route
        )
        route.broker_datas[0].broker_addrs[0] = brokers[0].address
        runtime = world.runtime("10.0.0.1")
        async with Producer("P", brokers[0].address, runtime=runtime) as producer:
            for _ in range(3):
                await producer.send(Message("T", b"x"))
            assert [len(broker.headers(SEND)) for broker in brokers] == [3, 0]
            route.broker_datas[0].broker_addrs[0] = brokers[1].address
            route.queue_datas[0].write_queue_nums = 2
            await producer.instance.routes.refresh("T")
            results = [await producer.send(Message("T", b"x")) for _ in range(4)]
            assert [len(broker.headers(SEND)) for broker in brokers] == [3, 4]
            assert sorted(result.message_queue.queue_id for result in results) == [0, 0, 1, 1]
            route.queue_datas[0].perm = 4
            await producer.instance.routes.refresh("T")
            with pytest.raises(RewindMQError, match="No route info of this topic"):
                await producer.send(Message("T", b"x"))
        for broker in brokers:
            await broker.close()

    world.run(main())
