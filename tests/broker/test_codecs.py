"""Peers of all three serialization types: responses and refusals have the type of their request."""

from __future__ import annotations

import pytest

from rewindmq.protocol.body.kv import KVTable
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.header.pull import PullMessageResponseHeader
from rewindmq.protocol.header.send import SendMessageResponseHeader
from rewindmq.protocol.message.record import decode_records
from tests.support.answers import body_of
from tests.support.stage import ServerStage


@pytest.mark.parametrize("serialize_type", list(SerializeType))
async def test_send_pull_commit_and_query(stage: ServerStage, serialize_type: SerializeType) -> None:
    await stage.start_broker()
    peer = stage.peer(serialize_type=serialize_type)
    sent = (await peer.send(properties={"TAGS": "TagA", "KEYS": "k"})).require_success()
    assert sent.serialize_type == serialize_type
    header = sent.decode_header(SendMessageResponseHeader)
    assert (header.queue_id, header.queue_offset, header.msg_region) == (0, 0, "DefaultRegion")
    assert header.trace_on is True
    found = await peer.pull(0, subscription="TagA")
    assert found.serialize_type == serialize_type
    (message,) = decode_records(body_of(found))
    assert (message.body, message.tags, message.offset_message_id) == (b"hello", "TagA", header.msg_id)
    assert found.decode_header(PullMessageResponseHeader).next_begin_offset == 1
    (await peer.commit(1)).require_success()
    assert await peer.stored_offset() == 1


@pytest.mark.parametrize("serialize_type", list(SerializeType))
async def test_refusals(stage: ServerStage, serialize_type: SerializeType) -> None:
    await stage.start_broker()
    peer = stage.peer(serialize_type=serialize_type)
    refused = await peer.send("../../x")
    assert (refused.serialize_type, refused.code) == (serialize_type, ResponseCode.SYSTEM_ERROR)
    assert refused.ext["MSG_REGION"] == "DefaultRegion"
    assert str(refused.ext["TRACE_ON"]).lower() == "true"
    missing = await peer.ask(RequestCode.PULL_MESSAGE, topic="T", queueId="zero")
    assert (missing.serialize_type, missing.code) == (serialize_type, ResponseCode.SYSTEM_ERROR)
    unknown = await peer.ask(9_999)
    assert (unknown.serialize_type, unknown.code) == (serialize_type, ResponseCode.REQUEST_CODE_NOT_SUPPORTED)


@pytest.mark.parametrize("serialize_type", list(SerializeType))
async def test_runtime_info_counts_what_happened(stage: ServerStage, serialize_type: SerializeType) -> None:
    broker = await stage.start_broker()
    peer = stage.peer(serialize_type=serialize_type)
    await peer.fill(3)
    await peer.pull(0)
    answer = await peer.ask(RequestCode.GET_BROKER_RUNTIME_INFO)
    table = decode_body(answer.require_success(), KVTable).table
    assert table["brokerVersionDesc"] == "V4_9_4"
    assert (table["msgPutTotalTodayNow"], table["msgGetTotalTodayNow"]) == ("3", "3")
    assert table["commitLogMaxOffset"] == str(broker.context.store.max_commit_log_offset)
    assert 0 <= float(table["commitLogDiskRatio"]) <= 1
    assert int(table["earliestMessageTimeStamp"]) == broker.context.store.earliest_store_time > 0
    for key in ("putTps", "getTransferedTps", "getTransferredTps"):
        assert [float(rate) >= 0 for rate in table[key].split(" ")] == [True] * 3
