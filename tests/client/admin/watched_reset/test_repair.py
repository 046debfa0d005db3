"""``--until-held`` resets lost queues again, and only them (docs/watched_reset.md)."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import pytest

from rewindmq import ConsumeConcurrentlyStatus, MessageExt, MessageModel, MessageQueue
from rewindmq.client.admin.reset_result import ResetResult
from rewindmq.client.admin.watched_reset.repair import repair
from rewindmq.client.admin.watched_reset.run import Began, Repair, ResetVerdict, common_state, run_watched
from rewindmq.client.admin.watched_reset.take_sample import take_sample
from rewindmq.protocol.errors import ClientError, ResponseError
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.watch.verdict.reset_watch import Change
from rewindmq.watch.verdict.states import State
from tests.client.admin.support import GROUP, TOPIC, new_consumer, start_mute_broker
from tests.support.fixtures import played
from tests.support.stage import SimStage

LINE = f"resetOffsetByTime -t {TOPIC} -g {GROUP} -s 0"


async def until_held(stage: SimStage, queues: int, options: str) -> tuple[list[Any], int]:
    """Reset an idle group with a slow listener, which loses the classic reset of queue 0 (R1).

    Queue 1, if there is one, is empty, so nothing of it can be lost.
    """
    await stage.create_topic(TOPIC, 1)
    await stage.send(10, TOPIC)
    if queues > 1:
        await stage.create_topic(TOPIC, queues)

    async def listener(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        await stage.runtime.timers.sleep(2.0)
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    async with new_consumer(stage, listener=listener, consume_thread_max=1):
        await stage.world.sleep(60)
        printed = await stage.printed(f"{LINE} --until-held {options}".split())
    return [piece.data for piece in printed if piece.data is not None], printed[-1].exit_code


@played()
async def test_only_the_lost_queue_of_a_classic_reset_is_reset_again_until_it_is_proven(
    stage: SimStage,
) -> None:
    data, exit_code = await until_held(stage, 2, "")
    (repaired,) = [item["repair"] for item in data if "repair" in item]
    assert repaired["queues"] == [{"brokerName": "broker-a", "queueId": 0}]
    assert repaired["modes"] == {"broker-a": "server"}
    last = data[-1]
    assert (last["verdict"], last["repairs"], exit_code) == ("proven", 1, 0)
    states = [item["change"]["state"] for item in data if "change" in item]
    assert states.count("lost") == 1


@played()
async def test_a_classic_reset_is_repeated_at_a_broker_whose_queues_are_all_lost(stage: SimStage) -> None:
    data, exit_code = await until_held(stage, 1, "--times 1")
    (repaired,) = [item["repair"] for item in data if "repair" in item]
    assert repaired["modes"] == {"broker-a": "classic"}
    assert (data[-1]["verdict"], data[-1]["repairs"], exit_code) == ("proven", 1, 0)


@played()
async def test_a_reset_that_is_lost_each_time_is_repeated_at_most_n_times(stage: SimStage) -> None:
    """A broadcasting consumer ignores the broker's offsets (BROADCAST)."""
    await stage.create_topic(TOPIC, 1)
    await stage.send(4, TOPIC)
    stage.brokers["broker-a"].context.offsets.table.commit(GROUP, TOPIC, 0, 4)
    async with new_consumer(stage, message_model=MessageModel.BROADCASTING):
        await stage.world.sleep(60)
        printed = await stage.printed(f"{LINE} --until-held --times 2".split())
    numbers = [piece.data["repair"]["number"] for piece in printed if "repair" in (piece.data or {})]
    last = printed[-1]
    assert (numbers, last.data["repairs"], last.data["verdict"]) == ([1, 2], 2, "lost")
    assert last.exit_code == 3


@played()
async def test_one_of_several_queues_is_not_reset_again_at_a_broker_that_resets_whole_topics(
    stage: SimStage,
) -> None:
    await start_mute_broker(stage, "broker-m")
    lost, kept = MessageQueue(TOPIC, "broker-m", 0), MessageQueue(TOPIC, "broker-m", 1)
    first = ResetResult({lost: 0, kept: 0}, {"broker-m": None})
    (outcome,) = await repair(await stage.admin(), TOPIC, GROUP, 0, first, {lost: 0}, force=True)
    assert outcome.queues == (lost,)
    assert "does not know reset modes" in (outcome.failure or "")
    assert "so no reset was sent" in (outcome.failure or "")


@pytest.mark.parametrize("mode", [ResetMode.SERVER, ResetMode.CLASSIC])
@played()
async def test_a_broker_that_fails_does_not_hide_what_was_reset_again_at_the_others(
    stage: SimStage, mode: ResetMode
) -> None:
    async with new_consumer(stage):
        await stage.create_topic(TOPIC, 1)
        await stage.send(4, TOPIC)
        await stage.world.sleep(60)
        await start_mute_broker(stage, "a-mute")
        lost = {MessageQueue(TOPIC, name, 0): 0 for name in ("a-mute", "broker-a", "z-gone")}
        modes: dict[str, ResetMode | None] = {queue.broker_name: mode for queue in lost}
        first = ResetResult(lost, modes)
        before = len(stage.consumed)
        outcomes = await repair(await stage.admin(), TOPIC, GROUP, 0, first, lost, force=True)
        assert [(each.broker, each.mode, each.failure is None) for each in outcomes] == [
            ("a-mute", "", False),
            ("broker-a", mode, True),
            ("z-gone", "", False),
        ]
        await stage.world.sleep(60)
        assert len(stage.consumed) == before + 4


@played()
async def test_a_broker_that_no_longer_serves_the_topic_is_not_called_reset(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 1)
    gone = MessageQueue(TOPIC, "broker-z", 0)
    first = ResetResult({gone: 0}, {"broker-z": None})
    (outcome,) = await repair(await stage.admin(), TOPIC, GROUP, 0, first, {gone: 0}, force=True)
    assert outcome.failure == f"broker broker-z no longer serves topic {TOPIC}: start it, and reset again"


async def two_brokers(stage: SimStage) -> list[MessageQueue]:
    """Give each of two brokers a queue with four messages, all of them consumed; return the queues."""
    await stage.start_broker("broker-b")
    await stage.create_topic(TOPIC, 1)
    await stage.send(4, TOPIC)
    for broker in stage.brokers.values():
        broker.context.offsets.table.commit(GROUP, TOPIC, 0, 4)
    return [MessageQueue(TOPIC, name, 0) for name in ("broker-a", "broker-b")]


@played()
async def test_queues_of_a_broker_that_ends_before_the_repair_stay_lost_and_the_others_are_repaired(
    stage: SimStage,
) -> None:
    """A broadcasting consumer ignores the brokers' offsets (BROADCAST)."""
    a, b = await two_brokers(stage)
    lost: list[MessageQueue] = []
    others: list[object] = []
    async with new_consumer(stage, message_model=MessageModel.BROADCASTING):
        await stage.world.sleep(60)
        running = run_watched(await stage.admin(), TOPIC, GROUP, 0, times=1)
        async with contextlib.aclosing(running) as items:
            async for item in items:
                if not isinstance(item, Change):
                    others.append(item)
                elif item.state is State.LOST:
                    lost.append(item.watch.queue)
                    if sorted(lost) == [a, b]:
                        await stage.brokers["broker-b"].close()
    failure = "broker-b did not tell the group's stored offsets, so it was not reset again"
    began, *repairs, verdict = others
    assert isinstance(began, Began)
    assert repairs == [Repair(1, (a,), {"broker-a": "classic"}), Repair(1, (b,), {}, failure)]
    assert isinstance(verdict, ResetVerdict)
    assert (verdict.state, verdict.repairs, sorted(lost)) == (State.LOST, 1, [a, a, b])


@played()
async def test_a_broker_that_does_not_answer_is_named_alone_and_nothing_is_reset(stage: SimStage) -> None:
    queues = [*await two_brokers(stage), MessageQueue(TOPIC, "broker-m", 0)]
    await start_mute_broker(stage, "broker-m", queues=1)
    admin = await stage.admin()
    with pytest.raises(ClientError, match="broker-m did not tell the group's stored") as refused:
        await anext(run_watched(admin, TOPIC, GROUP, 0))
    assert "broker-a" not in str(refused.value)
    sample = await take_sample(admin, TOPIC, GROUP, queues)
    assert [sample.queues[queue].stored for queue in queues] == [4, 4, None]


@played()
async def test_a_write_of_offsets_that_fails_at_the_second_broker_names_the_queues_already_written(
    stage: SimStage,
) -> None:
    """A broker refuses writes without an epoch after a fenced reset."""
    _, b = await two_brokers(stage)
    admin = await stage.admin()
    await admin.resets.reset(TOPIC, GROUP, {b: 2}, mode=ResetMode.FENCED)
    with pytest.raises(ResponseError) as failed:
        await admin.resets.reset(TOPIC, GROUP, 0, write=True)
    assert failed.value.__notes__ == ["already reset: broker-a:0"]


@played()
async def test_no_repair_is_a_watch(stage: SimStage) -> None:
    data, exit_code = await until_held(stage, 1, "--times 0")
    assert not [item for item in data if "repair" in item]
    assert (data[-1]["verdict"], exit_code) == ("lost", 3)


def test_a_reset_that_no_queue_accepted_is_not_proven() -> None:
    assert common_state([]) is State.UNKNOWN
    assert common_state([State.PROVEN, State.UNKNOWN]) is State.UNKNOWN
    assert common_state([State.PROVEN, State.LOST, State.UNKNOWN]) is State.LOST


@played()
async def test_single_queues_are_not_watched(stage: SimStage) -> None:
    with pytest.raises(ClientError, match="reset every queue of the topic: leave out"):
        await stage.run(f"{LINE} --until-held -b 127.0.0.1:1 -q 0")
