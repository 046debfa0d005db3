"""A reset of a topic with thousands of queues lets others pass, and no other request sees half of it."""

from __future__ import annotations

import asyncio

import pytest

from rewindmq.protocol.body.offset_table import ResetOffsetBody, ResetOffsetBodyForC
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import RemotingCommand, SerializeType
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
        stage.broker.context.offsets.commit("G", "T", queue_id, offset)
    await peer.heartbeat()
    return peer


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
        offsets, bystander = stage.broker.context.offsets, stage.peer("c2")
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
        context.offsets.take_reset("G", "T", {0: 5})
        context.offsets.reset("G", "T", {0: 5})
        answer = await asked
        assert answer.code == 1
        assert "was reset in fenced mode" in remark_of(answer)
        assert context.offsets.offsets_of("G", "T") == BEFORE | {0: 5}
        assert not context.reset_offsets
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
        context.topics.delete("T")
        answer = await asked
        assert answer.code == (1 if mode is ResetMode.CLASSIC else 17)
        assert context.offsets.offsets_of("G", "T") == BEFORE
        assert not context.offsets.has_epochs("G", "T")
        assert not context.reset_offsets
        assert peer.count(RequestCode.RESET_CONSUMER_CLIENT_OFFSET) == 0

    simulate(scenario, reset_mode=str(mode))
