"""A reset of a topic with thousands of queues lets others pass, and no other request sees half of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from rewindmq.broker.reset import announcer, classic, targets
from rewindmq.protocol.body.offset_table import ResetOffsetBody, ResetOffsetBodyForC
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.remoting.runtime import Cancellable, Timers
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.protocol.version import LanguageCode
from tests.support.answers import remark_of
from tests.support.fixtures import RunScenario
from tests.support.peer import Peer
from tests.support.stage import SimStage

QUEUES = 2_000
TO_THE_END = -1
BEFORE = dict.fromkeys(range(QUEUES), 7)
AFTER = dict.fromkeys(range(QUEUES), 0)


async def wide_group(stage: SimStage, serialize_type: SerializeType | None = None) -> Peer:
    """A consumer of a topic with empty queues, of which each has an offset."""
    peer = stage.peer(serialize_type=serialize_type)
    await peer.create_topic(write=QUEUES, read=QUEUES)
    for queue_id, offset in BEFORE.items():
        stage.broker.context.offsets.table.commit("G", "T", queue_id, offset)
    await peer.heartbeat()
    return peer


@dataclass
class CountedTimers:
    """Timers that count how often another turn of the event loop is asked for."""

    timers: Timers
    count: int = 0

    def call_later(self, seconds: float, callback: Callable[..., object], *args: Any) -> Cancellable:
        self.count += 1
        return self.timers.call_later(seconds, callback, *args)


async def half_done_reset(
    stage: SimStage, monkeypatch: pytest.MonkeyPatch
) -> asyncio.Future[RemotingCommand]:
    """Begin a reset, and return when it has searched some of the queues."""
    store, searched = stage.broker.context.store, 0
    max_offset = store.max_offset

    def count(topic: str, queue_id: int) -> int:
        nonlocal searched
        searched += 1
        return max_offset(topic, queue_id)

    monkeypatch.setattr(store, "max_offset", count)
    bystander = stage.peer("c2")
    await bystander.heartbeat("Other")
    asked = asyncio.ensure_future(stage.peer("admin").reset(TO_THE_END))
    while not searched:
        await bystander.heartbeat("Other")
    assert searched < QUEUES
    return asked


@pytest.mark.parametrize("mode", ResetMode)
def test_others_pass_and_see_all_of_a_reset_or_nothing(simulate: RunScenario, mode: ResetMode) -> None:
    async def scenario(stage: SimStage) -> None:
        await wide_group(stage)
        offsets, bystander = stage.broker.context.offsets.table, stage.peer("c2")
        await bystander.heartbeat("Other")
        asked = asyncio.ensure_future(stage.peer("admin").reset(TO_THE_END))
        passed = 0
        while not asked.done():
            await bystander.heartbeat("Other")
            passed += 1
            assert offsets.offsets_of("G", "T") in (BEFORE, AFTER)
        assert passed >= 5
        body = decode_body((await asked).require_success(), ResetOffsetBody)
        assert {queue.queue_id: offset for queue, offset in body.offset_table.items()} == AFTER
        assert offsets.offsets_of("G", "T") == (BEFORE if mode is ResetMode.CLASSIC else AFTER)

    simulate(scenario, reset_mode=str(mode))


@pytest.mark.parametrize("serialize_type", SerializeType)
@pytest.mark.parametrize("language", [LanguageCode.JAVA, LanguageCode.CPP])
def test_each_consumer_is_notified_of_all_queues_in_its_serialization_type(
    simulate: RunScenario, serialize_type: SerializeType, language: LanguageCode
) -> None:
    async def scenario(stage: SimStage) -> None:
        peer = await wide_group(stage, serialize_type)
        other = stage.peer("c2", serialize_type=SerializeType.MSGPACK)
        await other.heartbeat()
        admin = stage.peer("admin", language=language)
        (await admin.reset(TO_THE_END)).require_success()
        for consumer in (peer, other):
            notice = await consumer.hear(RequestCode.RESET_CONSUMER_CLIENT_OFFSET)
            if language is LanguageCode.CPP:
                lines = decode_body(notice, ResetOffsetBodyForC).offset_table
                assert {line.queue_id: line.offset for line in lines} == AFTER
            else:
                table = decode_body(notice, ResetOffsetBody).offset_table
                assert {queue.queue_id: offset for queue, offset in table.items()} == AFTER
        assert peer.received[-1][1].serialize_type == serialize_type

    simulate(scenario)


@pytest.mark.parametrize("mode", [ResetMode.CLASSIC, ResetMode.SERVER])
def test_a_fenced_reset_between_two_slices_refuses_the_other_modes(
    simulate: RunScenario, monkeypatch: pytest.MonkeyPatch, mode: ResetMode
) -> None:
    async def scenario(stage: SimStage) -> None:
        peer = await wide_group(stage)
        context = stage.broker.context
        asked = await half_done_reset(stage, monkeypatch)
        context.offsets.table.take_reset("G", "T", {0: 5})
        context.offsets.table.reset("G", "T", {0: 5})
        answer = await asked
        assert answer.code == 1
        assert "was reset in fenced mode" in remark_of(answer)
        assert context.offsets.table.offsets_of("G", "T") == BEFORE | {0: 5}
        assert not context.offsets.marks
        assert peer.count(RequestCode.RESET_CONSUMER_CLIENT_OFFSET) == 0

    simulate(scenario, reset_mode=str(mode))


@pytest.mark.parametrize("mode", ResetMode)
def test_a_topic_that_is_deleted_between_two_slices_is_not_reset(
    simulate: RunScenario, monkeypatch: pytest.MonkeyPatch, mode: ResetMode
) -> None:
    """The queues of the first slice would get offsets of the old topic, the others those of a new one."""

    async def scenario(stage: SimStage) -> None:
        peer = await wide_group(stage)
        context = stage.broker.context
        asked = await half_done_reset(stage, monkeypatch)
        context.tables.topics.delete("T")
        answer = await asked
        assert answer.code == (1 if mode is ResetMode.CLASSIC else 17)
        assert context.offsets.table.offsets_of("G", "T") == BEFORE
        assert not context.offsets.table.has_epochs("G", "T")
        assert not context.offsets.marks
        assert peer.count(RequestCode.RESET_CONSUMER_CLIENT_OFFSET) == 0

    simulate(scenario, reset_mode=str(mode))


def test_a_fenced_reset_answers_all_suspended_pulls_and_lets_others_pass(
    simulate: RunScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(announcer, "_SLICE", 4)

    async def scenario(stage: SimStage) -> None:
        peer, other = stage.peer("c1"), stage.peer("c2")
        await peer.create_topic(write=2, read=2)
        for each in (peer, other):
            await each.heartbeat()
        pulls = [asyncio.ensure_future(each.pull(0, hold_ms=60_000)) for each in (peer, other) * 20]
        of_others = asyncio.ensure_future(other.pull(0, group="Other", hold_ms=60_000))
        while stage.broker.context.pulls.long_polling.suspended_count < len(pulls) + 1:
            await stage.world.sleep(0.01)
        timers = CountedTimers(stage.broker.context.runtime.timers)
        monkeypatch.setattr(stage.broker.context.resets.announcer, "_timers", timers)
        (await stage.peer("admin").reset(TO_THE_END)).require_success()
        codes = [answer.code for answer in await asyncio.gather(*pulls)]
        # One redirect tells a client all.
        assert codes[:2] == [ResponseCode.PULL_OFFSET_MOVED] * 2
        assert set(codes[2:]) == {ResponseCode.PULL_NOT_FOUND}
        assert timers.count >= len(pulls) // 4
        assert not of_others.done()
        of_others.cancel()

    simulate(scenario, reset_mode="fenced")


def test_a_classic_reset_notifies_all_consumers_and_lets_others_pass(
    simulate: RunScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (classic, targets):
        monkeypatch.setattr(module, "CONSUMERS_PER_SLICE", 3)

    async def scenario(stage: SimStage) -> None:
        peers = [stage.peer(f"c{number}") for number in range(10)]
        await peers[0].create_topic(write=1, read=1)
        stage.broker.context.offsets.table.commit("G", "T", 0, 7)
        for peer in peers:
            await peer.heartbeat()
        (await stage.peer("admin").reset(TO_THE_END)).require_success()
        for peer in peers:
            await peer.hear(RequestCode.RESET_CONSUMER_CLIENT_OFFSET)
            assert peer.count(RequestCode.RESET_CONSUMER_CLIENT_OFFSET) == 1

    simulate(scenario)
