"""The states of a watched reset, and ``resetOffsetByTime --watch`` (docs/watched_reset.md)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from rewindmq import ConsumeConcurrentlyStatus, MessageExt
from rewindmq.client.admin.admin_client import AdminClient
from rewindmq.client.admin.watched_reset.brokers import Brokers
from rewindmq.client.admin.watched_reset.take_sample import take_sample
from rewindmq.protocol.names import retry_topic
from rewindmq.protocol.points import Point
from tests.client.admin.support import GROUP, TOPIC, new_consumer, start_mute_broker
from tests.support.fixtures import played
from tests.support.stage import SimStage
from tests.watch.one_queue import QUEUE


async def slow(stage: SimStage, messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
    await stage.runtime.timers.sleep(2.0)
    return ConsumeConcurrentlyStatus.CONSUME_SUCCESS


@pytest.mark.parametrize(("mode", "verdict", "code"), [("classic", "lost", 3), ("fenced", "proven", 0)])
@played()
async def test_the_command_shows_that_an_idle_slow_consumer_loses_a_classic_reset_and_keeps_a_fenced_one(
    stage: SimStage, mode: str, verdict: str, code: int
) -> None:
    """The classic reset meets R1: the broker answers the suspended pull after the wait."""
    await stage.create_topic(TOPIC, 1)
    await stage.send(10, TOPIC)

    async def listener(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        return await slow(stage, messages)

    async with new_consumer(stage, listener=listener, consume_thread_max=1):
        await stage.world.sleep(60)
        line = f"resetOffsetByTime -t {TOPIC} -g {GROUP} -s 0 --mode {mode} --watch"
        *_, last = await stage.printed(line.split())
        assert (last.data["verdict"], last.exit_code) == (verdict, code)


@pytest.mark.parametrize(("skipped", "verdict", "code"), [(400, "proven", 0), (4, "unknown", 4)])
@played()
async def test_a_skip_is_proven_unless_the_consumers_may_have_come_there_by_themselves(
    stage: SimStage, skipped: int, verdict: str, code: int
) -> None:
    await stage.create_topic(TOPIC, 1)
    await stage.send(skipped + 30, TOPIC)

    async def listener(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        return await slow(stage, messages)

    async with new_consumer(stage, listener=listener, consume_thread_max=1):
        await stage.world.sleep(60)
        target = f"--to-offset broker-a:0={skipped + 30}"
        line = f"resetOffsetByTime -t {TOPIC} -g {GROUP} {target} --mode server --watch"
        *_, last = await stage.printed(line.split())
    assert (last.data["verdict"], last.exit_code) == (verdict, code)
    if verdict == "unknown":
        assert "instead of skipping them" in last.data["queues"][0]["reason"]


@played()
async def test_the_command_is_cancelled_cleanly_while_it_watches(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 1)
    await stage.send(2, TOPIC)
    async with new_consumer(stage):
        await stage.world.sleep(20)
        command = asyncio.create_task(stage.run(f"resetOffsetByTime -t {TOPIC} -g {GROUP} -s 0 --watch"))
        await stage.world.sleep(5)
        command.cancel()
        with pytest.raises(asyncio.CancelledError):
            await command


@played()
async def test_a_kept_reset_of_a_group_that_gets_none_of_the_messages_is_proven(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 1)
    await stage.send(10, TOPIC)
    async with new_consumer(stage, expression="TagB"):
        await stage.world.sleep(90)
        line = f"resetOffsetByTime -t {TOPIC} -g {GROUP} -s 0 --watch --wait 90"
        *_, last = await stage.printed(line.split())
    assert (last.data["verdict"], last.exit_code) == ("proven", 0)


@played()
async def test_the_command_says_now_and_then_what_it_waits_for(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 2)
    await stage.send(20, TOPIC)

    async def listener(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        return await slow(stage, messages)

    async with new_consumer(stage, listener=listener, consume_thread_max=1):
        await stage.world.sleep(90)
        line = f"resetOffsetByTime -t {TOPIC} -g {GROUP} -s 0 --mode fenced --watch"
        printed = await stage.printed(line.split())
    waits = [text for item in printed for text in item.lines if "undecided" in text]
    assert len(waits) >= 2
    assert all(" s left; broker-a:0 is " in text and "stored " in text for text in waits)
    assert all(" and waits for " in text for text in waits)


@played()
async def test_a_group_without_consumers_is_stored_and_then_unknown(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 1)
    await stage.send(4, TOPIC)
    stage.brokers["broker-a"].context.offsets.table.commit(GROUP, TOPIC, 0, 4)
    *_, change, last = await stage.printed(
        f"resetOffsetByTime -t {TOPIC} -g {GROUP} -s 0 --watch --wait 5".split()
    )
    assert change.data["change"]["state"] == "unknown"
    assert "takes effect when one takes it" in change.data["change"]["reason"]
    assert last.exit_code == 4


@played()
async def test_a_watch_of_a_group_that_no_consumer_joins_ends_after_30_s(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 1)
    await stage.send(4, TOPIC)
    stage.brokers["broker-a"].context.offsets.table.commit(GROUP, TOPIC, 0, 4)
    began = stage.world.now
    *_, last = await stage.printed(f"resetOffsetByTime -t {TOPIC} -g {GROUP} -s 0 --watch".split())
    assert 30 <= stage.world.now - began < 35
    assert (last.data["verdict"], last.exit_code) == ("unknown", 4)
    assert last.data["queues"][0]["reason"].startswith("no consumer is connected")


@played()
async def test_a_watch_asks_name_servers_for_a_route_now_and_then(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 1)
    await stage.send(4, TOPIC)
    async with new_consumer(stage):
        await stage.world.sleep(20)
        asked: list[str] = []

        def probe(point: Point, details: dict[str, Any]) -> None:
            if point is Point.ROUTE_QUERIED:
                asked.append(details["topic"])

        admin = AdminClient(stage.namesrv, runtime=stage.world.runtime(probe=probe))
        async with admin:
            brokers = Brokers(admin)
            for _ in range(60):
                seen = await take_sample(admin, TOPIC, GROUP, [QUEUE], brokers)
                assert (seen.queues[QUEUE].stored, len(seen.clients), seen.is_complete) == (4, 1, True)
                await stage.world.sleep(0.5)
        assert asked.count(TOPIC) == asked.count(retry_topic(GROUP)) == 3


@played()
async def test_a_broker_that_does_not_tell_the_consumers_is_not_taken_for_one_without_consumers(
    stage: SimStage,
) -> None:
    await stage.create_topic(TOPIC, 1)
    await stage.send(4, TOPIC)
    stage.brokers["broker-a"].context.offsets.table.commit(GROUP, TOPIC, 0, 4)
    admin = await stage.admin()
    alone = await take_sample(admin, TOPIC, GROUP, [QUEUE])
    assert (alone.clients, alone.is_complete) == (frozenset(), True)
    # It refuses GET_CONSUMER_CONNECTION_LIST (203), and is asked first.
    await start_mute_broker(stage, "a-mute", topics=(retry_topic(GROUP), "Other"))
    seen = await take_sample(admin, TOPIC, GROUP, [QUEUE])
    assert (seen.queues[QUEUE].stored, seen.clients, seen.is_complete) == (4, frozenset(), False)


@played()
async def test_a_broker_that_refuses_is_no_reason_to_ask_no_other_for_the_consumers(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 1)
    await stage.send(4, TOPIC)
    async with new_consumer(stage) as consumer:
        admin = await stage.admin()
        await start_mute_broker(stage, "a-mute", topics=(retry_topic(GROUP), "Other"))
        seen = await take_sample(admin, TOPIC, GROUP, [QUEUE])
        assert (seen.clients, seen.is_complete) == (frozenset({consumer.client_id}), True)
