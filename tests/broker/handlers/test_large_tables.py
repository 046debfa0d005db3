"""Requests for whole tables: a broker with full tables serves others while it builds the response."""

from __future__ import annotations

import asyncio

import pytest

from rewindmq.broker.limits import MAX_GROUPS_PER_CONNECTION
from rewindmq.protocol.body.offset_table import ConsumerOffsetSerializeWrapper
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import CommandHeader, SerializeType
from rewindmq.protocol.header.admin import (
    GetConsumeStatsInBrokerHeader,
    GetConsumeStatsRequestHeader,
    GetTopicStatsInfoRequestHeader,
    QueryConsumeQueueRequestHeader,
    QueryConsumeTimeSpanRequestHeader,
)
from rewindmq.protocol.message import Message
from rewindmq.protocol.message.batch import encode_batch
from rewindmq.protocol.remoting.slices import large_responses
from rewindmq.protocol.remoting.slices.run import run_at_once
from tests.support.choice import first_of
from tests.support.fixtures import RunScenario, simulated
from tests.support.stage import SimStage

REQUESTS: dict[RequestCode, CommandHeader | None] = {
    RequestCode.GET_ALL_TOPIC_CONFIG: None,
    RequestCode.GET_ALL_CONSUMER_OFFSET: None,
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: None,
    RequestCode.GET_TOPIC_STATS_INFO: GetTopicStatsInfoRequestHeader("T"),
    RequestCode.GET_CONSUME_STATS: GetConsumeStatsRequestHeader("G", "T"),
    RequestCode.GET_BROKER_CONSUME_STATS: GetConsumeStatsInBrokerHeader(is_order=False),
    RequestCode.QUERY_CONSUME_TIME_SPAN: QueryConsumeTimeSpanRequestHeader("T", "G"),
    RequestCode.QUERY_CONSUME_QUEUE: QueryConsumeQueueRequestHeader("T", 0, 0, 2_000, "G"),
    RequestCode.GET_ALL_PRODUCER_INFO: None,
}


async def fill(stage: SimStage) -> None:
    """Two thousand topics, groups of producers and of consumers, offsets, queues and messages of a queue."""
    context, peer = stage.broker.context, stage.peer()
    await peer.create_topic(write=2_000, read=2_000)
    batch = encode_batch([Message("T", b"x")] * 2_000)
    (await peer.send(body=batch, code=RequestCode.SEND_BATCH_MESSAGE, batch=True)).require_success()
    for first in range(0, 2_000, MAX_GROUPS_PER_CONNECTION):
        produced = range(first, first + MAX_GROUPS_PER_CONNECTION)
        await stage.peer(f"p{first}").heartbeat(producers=[f"P{number}" for number in produced])
    for number in range(2_000):
        context.tables.topics.ensure(f"T{number}", 1)
        context.tables.groups.find(f"G{number}")
        context.offsets.table.commit(f"G{number}", f"T{number}", 0, 1)
    context.tables.groups.find("G")
    context.offsets.table.commit("G", "T", 0, 1)
    await context.tables.flush.saved()


@pytest.mark.parametrize("serialize_type", [SerializeType.JSON, SerializeType.MSGPACK])
@pytest.mark.parametrize("code", first_of(REQUESTS, keep=2))
def test_a_whole_table_lets_other_requests_pass(
    simulate: RunScenario, code: RequestCode, serialize_type: SerializeType
) -> None:
    async def scenario(stage: SimStage) -> None:
        await fill(stage)
        peer, bystander = stage.peer(serialize_type=serialize_type), stage.peer("c2")
        await peer.heartbeat()
        await bystander.heartbeat()
        order: list[str] = []
        asked = asyncio.ensure_future(peer.ask(code, REQUESTS[code]))
        asked.add_done_callback(lambda _: order.append("table"))
        for _ in range(2):
            await bystander.heartbeat()
            order.append("heartbeat")
        answer = (await asked).require_success()
        assert order == ["heartbeat", "heartbeat", "table"]
        # At once, it would have been the same.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(large_responses, "SMALL_ENTRIES", 1_000_000)
            assert (await peer.ask(code, REQUESTS[code])).body == answer.body

    simulate(scenario)


@simulated()
async def test_43_has_offsets_and_epochs_that_belong_together(stage: SimStage) -> None:
    """A fenced reset while the table is copied: the response has both of its parts, or none."""
    offsets = stage.broker.context.offsets.table
    for number in range(20_000):
        offsets.commit(f"G{number}", "T", 0, 1)
    peer = stage.peer()
    copy = offsets.copy_in_slices()
    next(copy)
    for group in ("G0", "G19999"):
        offsets.take_reset(group, "T", {0: 7})
        offsets.reset(group, "T", {0: 7})
    copied, epochs = run_at_once(copy)
    assert (copied["T@G0"], epochs.get("T@G0")) == ({0: 1}, None)
    assert (copied["T@G19999"], epochs.get("T@G19999")) == ({0: 7}, {0: 1})
    response = (await peer.ask(RequestCode.GET_ALL_CONSUMER_OFFSET)).require_success()
    body = decode_body(response, ConsumerOffsetSerializeWrapper)
    assert body.offset_table["T@G0"] == {0: 7}
    assert body.epoch_table == {"T@G0": {0: 1}, "T@G19999": {0: 1}}
