"""Requests of administrators to a client: status (221), running info (307), direct consumption (309)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rewindmq import MessageExt
from rewindmq.client.consume.process_queue import ProcessQueue
from rewindmq.client.core.stack_dump import stack_dump
from rewindmq.client.push.consume_statistics import ConsumeStatistics
from rewindmq.protocol.body.offset_table import GetConsumerStatusBody
from rewindmq.protocol.body.running_info import ConsumerRunningInfo
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import CommandHeader, RemotingCommand
from rewindmq.protocol.header.client import GetConsumerRunningInfoRequestHeader
from rewindmq.protocol.header.message import ConsumeMessageDirectlyResultRequestHeader
from rewindmq.protocol.header.reset import GetConsumerStatusRequestHeader
from rewindmq.protocol.message_queue import MessageQueue
from tests.client.inbox import Inbox
from tests.support.clients import OK
from tests.support.fixtures import played
from tests.support.stage import SimStage

Q0 = MessageQueue("T", "broker-a", 0)


async def ask(
    stage: SimStage, header: CommandHeader, code: RequestCode, body: bytes = b""
) -> RemotingCommand:
    """Send a request to the first consumer of G from its broker, and return the response."""
    group = stage.brokers["broker-a"].context.clients.consumers.find("G")
    assert group is not None
    connection = next(iter(group.channels))
    return await connection.invoke(RemotingCommand(code, header, body or None), 60)


@played()
async def test_221_returns_offsets_of_one_topic_or_of_all(stage: SimStage) -> None:
    await stage.create_topic(queues=1)
    await stage.fill(7)
    await stage.consume(Inbox(stage.world))
    await stage.until(lambda: stage.stored() == {0: 7})

    async def status_of(topic: str, group: str = "G") -> dict[MessageQueue, int]:
        header = GetConsumerStatusRequestHeader(topic, group)
        answer = await ask(stage, header, RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT)
        return decode_body(answer.require_success(), GetConsumerStatusBody).message_queue_table

    assert await status_of("T") == {Q0: 7}
    await stage.world.sleep(30)
    assert {queue.topic for queue in await status_of("")} == {"T", "%RETRY%G"}
    assert await status_of("Other") == {}
    assert await status_of("T", "H") == {}


@played()
async def test_running_info_of_an_unknown_group_is_refused(stage: SimStage) -> None:
    await stage.create_topic(queues=1)
    await stage.consume(Inbox(stage.world))
    await stage.world.sleep(3)
    header = GetConsumerRunningInfoRequestHeader("H", "c1")
    answer = await ask(stage, header, RequestCode.GET_CONSUMER_RUNNING_INFO)
    assert (answer.code, answer.remark) == (
        1,
        "The Consumer Group <H> not exist in this consumer",
    )


@pytest.mark.parametrize(("threads", "waits"), [(1, True), (2, False)])
@played()
async def test_a_reset_occupies_the_thread_that_would_respond(
    stage: SimStage, threads: int, waits: bool
) -> None:
    """As in Java, where resets and administrators share few threads (docs/spec/client.md C.4)."""
    await stage.create_topic(queues=1)
    await stage.fill(3)
    await stage.consume(Inbox(stage.world), client_callback_executor_threads=threads)
    await stage.until(lambda: stage.stored() == {0: 3})
    admin = await stage.admin()
    start = stage.world.now
    await admin.resets.reset("T", "G", 0)
    await stage.world.sleep(1)
    header = GetConsumerRunningInfoRequestHeader("G", "c1")
    answer = await ask(stage, header, RequestCode.GET_CONSUMER_RUNNING_INFO)
    assert (stage.world.now - start > 9.9) == waits
    info = decode_body(answer.require_success(), ConsumerRunningInfo)
    # During the wait the dropped queue is still in the table.
    assert waits or info.mq_table[Q0].droped


@played()
async def test_running_info_counts_failures_apart_and_shows_the_blocked_queue(stage: SimStage) -> None:
    await stage.create_topic(queues=1)
    await stage.fill(20)

    async def every_other(messages: Sequence[MessageExt]) -> Any:
        if messages[0].topic != "T":
            return OK
        await stage.world.sleep(0.5)
        return None if messages[0].queue_offset % 2 else OK

    consumer = await stage.consume(every_other, consume_thread_max=1)
    await stage.world.sleep(15)
    info = await consumer.running_info()
    status = info.status_table["T"]
    assert status.consume_failed_msgs == 10
    assert status.consume_failed_tps == status.consume_ok_tps > 0
    assert status.consume_rt == pytest.approx(500, abs=60)
    await stage.world.sleep(120)
    later = (await consumer.running_info()).status_table["T"]
    assert (later.consume_ok_tps, later.consume_failed_tps, later.pull_tps) == (0, 0, 0)
    assert later.consume_failed_msgs == 10


def test_rates_cover_the_last_minute() -> None:
    statistics = ConsumeStatistics(0.0)
    queue = ProcessQueue(0.0)
    for second in range(0, 181, 5):
        # The messages were cached and are consumed.
        queue.counts.pulled += 50 if second <= 90 else 5
        statistics.gather(float(second), {Q0: queue})
    assert statistics.status("T", 180.0).consume_ok_tps == 1.0
    assert statistics.status("Other", 180.0).consume_ok_tps == 0
    assert queue.last_consume == 180.0


async def test_the_stack_dump_shows_where_a_coroutine_waits() -> None:
    async def waiting_for_godot() -> None:
        await asyncio.Event().wait()

    task = asyncio.create_task(waiting_for_godot())
    await asyncio.sleep(0)
    text = stack_dump()
    task.cancel()
    assert "waiting_for_godot" in text
    assert "thread MainThread" in text


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=5)
@given(bodies=st.lists(st.binary(max_size=200), min_size=5, max_size=5))
@played()
async def test_309_with_an_invalid_record_is_refused_without_a_listener_call(
    stage: SimStage, bodies: list[bytes]
) -> None:
    await stage.create_topic(queues=1)
    inbox = Inbox(stage.world)
    await stage.consume(inbox)
    await stage.world.sleep(3)
    header = ConsumeMessageDirectlyResultRequestHeader("G", "c1", "0" * 32, "broker-a")
    for body in bodies:
        answer = await ask(stage, header, RequestCode.CONSUME_MESSAGE_DIRECTLY, body)
        assert (answer.code, answer.remark) == (1, "one message is expected, and 0 came")
    assert inbox.messages == []
