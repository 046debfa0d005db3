"""The preview of a reset says what the reset does, and changes nothing (docs/watched_reset.md)."""

from __future__ import annotations

import pytest

from rewindmq import MessageQueue, TopicConfig
from rewindmq.client.admin.watched_reset.make_preview import make_preview
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import ResponseError
from tests.client.admin.support import GROUP, TOPIC, new_consumer
from tests.support.fixtures import RunScenario
from tests.support.stage import SimStage

pytestmark = pytest.mark.usefixtures("utc")
Q0, Q1 = MessageQueue(TOPIC, "broker-a", 0), MessageQueue(TOPIC, "broker-a", 1)


async def consumed(stage: SimStage) -> int:
    """Let the group consume four messages of each of two queues; return the second message's store time."""
    await stage.create_topic(TOPIC, 2)
    await stage.send(4, TOPIC)
    store = stage.brokers["broker-a"].context.store
    await stage.world.sleep(20)
    return store.store_time(TOPIC, 0, 1)


def test_the_preview_names_the_targets_that_the_reset_then_has(play: RunScenario) -> None:
    async def scenario(stage: SimStage) -> None:
        async with new_consumer(stage) as consumer:
            timestamp = await consumed(stage)
            admin = await stage.admin()
            preview = await make_preview(admin, TOPIC, GROUP, timestamp)
            row = {row.queue: row for row in preview.queues}[Q0]
            assert (row.min_offset, row.max_offset, row.stored, row.target) == (0, 4, 4, 1)
            assert (row.redelivered, row.skipped, row.target_time) == (3, 0, timestamp)
            sizes = [(await admin.message_at(Q0, offset)).store_size for offset in (1, 2, 3)]
            assert row.bytes == sum(sizes)
            assert row.consumer == consumer.client_id
            assert preview.consumers == (consumer.client_id,)
            assert preview.obstacles == ()
            # Nothing has changed.
            assert await admin.stored_offset(GROUP, Q0) == 4
            result = await admin.reset_offset_by_timestamp(TOPIC, GROUP, timestamp)
            assert result.offset_table == {row.queue: row.target for row in preview.queues}

    play(scenario)


def test_a_preview_to_the_end_counts_the_skipped_messages(play: RunScenario) -> None:
    async def scenario(stage: SimStage) -> None:
        await consumed(stage)
        for queue in (Q0, Q1):
            stage.brokers["broker-a"].context.offsets.commit(GROUP, TOPIC, queue.queue_id, 1)
        preview = await make_preview(await stage.admin(), TOPIC, GROUP, -1)
        first = preview.queues[0]
        assert (first.target, first.target_time, first.redelivered, first.skipped) == (4, None, 0, 3)
        assert any("no consumer is connected" in note for note in preview.notes)

    play(scenario)


def test_without_force_the_preview_moves_a_queue_only_back(play: RunScenario) -> None:
    async def scenario(stage: SimStage) -> None:
        await consumed(stage)
        stage.brokers["broker-a"].context.offsets.commit(GROUP, TOPIC, 0, 1)
        preview = await make_preview(await stage.admin(), TOPIC, GROUP, -1, force=False)
        assert preview.queues[0].target == 1

    play(scenario)


def test_the_preview_says_why_a_group_cannot_be_moved(play: RunScenario) -> None:
    async def scenario(stage: SimStage) -> None:
        await consumed(stage)
        admin = await stage.admin()
        preview = await make_preview(admin, TOPIC, "nobody", 0)
        assert {row.stored for row in preview.queues} == {None}
        assert "no stored offset in the topic" in preview.obstacles[0]

    play(scenario)


def test_the_command_prints_the_preview_as_a_table_and_as_json(play: RunScenario) -> None:
    async def scenario(stage: SimStage) -> None:
        async with new_consumer(stage):
            timestamp = await consumed(stage)
            line = f"resetOffsetByTime -t {TOPIC} -g {GROUP} -s {timestamp} --preview"
            lines = await stage.run(line)
            assert lines[0] == f"preview: group[{GROUP}], topic[{TOPIC}], timestamp[{timestamp}]"
            assert "Redelivered: 6   Skipped: 0" in next(text for text in lines if text.startswith("Redel"))
            data = await stage.data(line)
            assert data["redelivered"] == 6
            assert [row["targetOffset"] for row in data["queues"]][:2] == [1, 1]

    play(scenario)


def test_the_preview_has_queues_that_are_only_read(play: RunScenario) -> None:
    async def scenario(stage: SimStage) -> None:
        admin = await stage.admin()
        await stage.create_topic(TOPIC, 2)
        await stage.send(4, TOPIC)
        for writable in (1, 0):
            shrunk = TopicConfig(topic_name=TOPIC, read_queue_nums=2, write_queue_nums=writable)
            await admin.create_and_update_topic_config(stage.brokers["broker-a"].address, shrunk)
            preview = await make_preview(admin, TOPIC, GROUP, -1)
            assert [(row.queue, row.min_offset, row.max_offset) for row in preview.queues] == [
                (Q0, 0, 4),
                (Q1, 0, 4),
            ]

    play(scenario)


def test_a_topic_without_a_route_is_refused(play: RunScenario) -> None:
    async def scenario(stage: SimStage) -> None:
        with pytest.raises(ResponseError) as refused:
            await make_preview(await stage.admin(), "NoTopic", GROUP, 0)
        assert refused.value.code == ResponseCode.TOPIC_NOT_EXIST

    play(scenario)
