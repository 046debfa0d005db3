"""Addresses in routes are replaced, and nothing else changes."""

from __future__ import annotations

import pytest

from rewindmq.protocol.body.cluster import ClusterInfo
from rewindmq.protocol.body.route import BrokerData, QueueData, TopicRouteData
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body, encode_body
from rewindmq.protocol.command import FLAG_RESPONSE, RemotingCommand, SerializeType
from rewindmq.protocol.frame import FrameDecoder, encode_frame
from rewindmq.race.proxy.route_answer import broker_addresses, with_addresses
from tests.race.proxy.venue import CODECS

ROUTE = TopicRouteData(
    [QueueData("127.0.0.1:1", 4, 4, 6)],
    [BrokerData("c", "127.0.0.1:1", {0: "127.0.0.1:1", 1: "127.0.0.1:2"})],
)
FRONTS = {"127.0.0.1:1": "127.0.0.1:50001", "127.0.0.1:2": "10.9.9.9:2"}


def answer(body: bytes, serialize_type: SerializeType) -> RemotingCommand:
    """As received."""
    command = RemotingCommand(ResponseCode.SUCCESS, body=body, opaque=7, flag=FLAG_RESPONSE, remark="r")
    return FrameDecoder().feed(encode_frame(command, serialize_type))[0]


def body_of(command: RemotingCommand) -> bytes:
    """The body as received."""
    assert isinstance(command.body, (bytes, memoryview))
    return bytes(command.body)


@pytest.mark.parametrize("standard", [False, True])
@pytest.mark.parametrize("serialize_type", CODECS)
def test_broker_addresses_in_a_route_are_replaced_and_nothing_else(
    serialize_type: SerializeType, standard: bool
) -> None:
    body = encode_body(ROUTE, serialize_type, standard)
    received = answer(body, serialize_type)
    assert broker_addresses(RequestCode.GET_ROUTEINFO_BY_TOPIC, received) == {
        "127.0.0.1:1": "127.0.0.1:1",
        "127.0.0.1:2": "127.0.0.1:1-s1",
    }
    (changed,) = FrameDecoder().feed(with_addresses(received, FRONTS))
    assert (changed.opaque, changed.flag, changed.remark) == (7, FLAG_RESPONSE, "r")
    assert changed.serialize_type is serialize_type
    route = decode_body(changed, TopicRouteData)
    assert route.queue_datas == ROUTE.queue_datas
    assert route.broker_datas == [BrokerData("c", "127.0.0.1:1", dict(enumerate(FRONTS.values())))]
    if serialize_type is not SerializeType.MSGPACK:
        bare = b'{0:"127.0.0.1:50001"' in body_of(changed)
        assert bare is not standard


def test_unknown_fields_of_a_route_are_kept() -> None:
    broker = b'{"brokerAddrs":{0:"127.0.0.1:1"},"brokerName":"a","zone\\u0041":1,"cluster":"c"}'
    body = b'{"brokerDatas":[%s],"x":[null]}' % broker
    received = answer(body, SerializeType.JSON)
    (changed,) = FrameDecoder().feed(with_addresses(received, FRONTS))
    assert changed.body == body.replace(b"127.0.0.1:1", b"127.0.0.1:50001")
    packed = encode_body(ROUTE, SerializeType.MSGPACK)
    extended = b"\x84\xa1x\x01" + packed[1:]
    received = answer(extended, SerializeType.MSGPACK)
    (changed,) = FrameDecoder().feed(with_addresses(received, FRONTS))
    assert body_of(changed).startswith(b"\x84\xa1x\x01")


def test_addresses_in_cluster_info_are_replaced_and_damaged_responses_are_unchanged() -> None:
    info = ClusterInfo({"a": BrokerData("c", "a", {0: "127.0.0.1:1"})}, {"c": {"a"}})
    received = answer(encode_body(info, SerializeType.JSON), SerializeType.JSON)
    assert broker_addresses(RequestCode.GET_BROKER_CLUSTER_INFO, received) == {"127.0.0.1:1": "a"}
    (changed,) = FrameDecoder().feed(with_addresses(received, FRONTS))
    assert decode_body(changed, ClusterInfo).broker_addr_table["a"].broker_addrs == {0: "127.0.0.1:50001"}
    damaged = answer(b"{", SerializeType.JSON)
    assert broker_addresses(RequestCode.GET_BROKER_CLUSTER_INFO, damaged) == {}
