"""The preview of a reset says what the reset does, and changes nothing (docs/watched_reset.md)."""

from __future__ import annotations

import pytest

from rewindmq import MessageQueue, TopicConfig
from rewindmq.client.admin.watched_reset.make_preview import make_preview
from rewindmq.protocol.body.group import SubscriptionGroupConfig
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import ResponseError
from rewindmq.protocol.profile import RELEASES, Profile
from rewindmq.protocol.reset_mode import ResetMode
from tests.client.admin.support import GROUP, TOPIC, new_consumer
from tests.support.fixtures import RunScenario, played
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


@played()
async def test_the_preview_names_the_targets_that_the_reset_then_has(stage: SimStage) -> None:
    async with new_consumer(stage) as consumer:
        timestamp = await consumed(stage)
        admin = await stage.admin()
        preview = await make_preview(admin, TOPIC, GROUP, timestamp)
        row = {row.queue: row for row in preview.queues}[Q0]
        assert (row.min_offset, row.max_offset, row.stored, row.target) == (0, 4, 4, 1)
        assert (row.redelivered, row.skipped, row.target_time) == (3, 0, timestamp)
        sizes = [(await admin.messages.message_at(Q0, offset)).store_size for offset in (1, 2, 3)]
        assert row.bytes == sum(sizes)
        assert row.consumer == consumer.client_id
        assert preview.consumers == (consumer.client_id,)
        assert preview.obstacles == ()
        # Nothing has changed.
        assert await admin.groups.stored_offset(GROUP, Q0) == 4
        result = await admin.resets.reset(TOPIC, GROUP, timestamp)
        assert result.offset_table == {row.queue: row.target for row in preview.queues}


@played()
async def test_a_preview_to_the_end_counts_the_skipped_messages(stage: SimStage) -> None:
    await consumed(stage)
    for queue in (Q0, Q1):
        stage.brokers["broker-a"].context.offsets.table.commit(GROUP, TOPIC, queue.queue_id, 1)
    preview = await make_preview(await stage.admin(), TOPIC, GROUP, -1)
    first = preview.queues[0]
    assert (first.target, first.target_time, first.redelivered, first.skipped) == (4, None, 0, 3)
    assert any("no consumer is connected" in note for note in preview.notes)


@played()
async def test_without_force_the_preview_moves_a_queue_only_back(stage: SimStage) -> None:
    await consumed(stage)
    for queue in (Q0, Q1):
        stage.brokers["broker-a"].context.offsets.table.commit(GROUP, TOPIC, queue.queue_id, 1)
    preview = await make_preview(await stage.admin(), TOPIC, GROUP, -1, force=False)
    assert [row.target for row in preview.queues] == [1, 1]


@played()
async def test_the_preview_says_why_a_group_cannot_be_moved(stage: SimStage) -> None:
    await consumed(stage)
    admin = await stage.admin()
    preview = await make_preview(admin, TOPIC, "nobody", 0)
    assert {row.stored for row in preview.queues} == {None}
    assert "no stored offset in the topic" in preview.obstacles[0]
    (note,) = [note for note in preview.notes if "nobody" in note]
    assert note == "no broker of the topic knows group nobody: check the group's name"
    async with new_consumer(stage):
        known = await make_preview(admin, TOPIC, GROUP, 0)
    assert not any("check the group's name" in note for note in known.notes)


@played()
async def test_the_command_prints_the_preview_as_a_table_and_as_json(stage: SimStage) -> None:
    async with new_consumer(stage):
        timestamp = await consumed(stage)
        line = f"resetOffsetByTime -t {TOPIC} -g {GROUP} -s {timestamp} --preview"
        lines = await stage.run(line)
        assert lines[0] == f"preview: group[{GROUP}], topic[{TOPIC}], timestamp[{timestamp}]"
        assert "Redelivered: 6   Skipped: 0" in next(text for text in lines if text.startswith("Redel"))
        assert lines[-1].startswith("EVIDENCE: broker-a: the broker tells what it hands out again: proven ")
        data = await stage.data(line)
        assert data["redelivered"] == 6
        (evidence,) = data["evidence"]
        assert (evidence["promise"], evidence["queues"]) == ("proven", ["broker-a:0", "broker-a:1"])
        assert lines[-1] == f"EVIDENCE: {evidence['text']}"
        assert [row["targetOffset"] for row in data["queues"]][:2] == [1, 1]


@played()
async def test_the_preview_has_queues_that_are_only_read(stage: SimStage) -> None:
    admin = await stage.admin()
    await stage.create_topic(TOPIC, 2)
    await stage.send(4, TOPIC)
    for writable in (1, 0):
        shrunk = TopicConfig(topic_name=TOPIC, read_queue_nums=2, write_queue_nums=writable)
        await admin.topics.create_and_update_topic_config(stage.brokers["broker-a"].address, shrunk)
        preview = await make_preview(admin, TOPIC, GROUP, -1)
        assert [(row.queue, row.min_offset, row.max_offset) for row in preview.queues] == [
            (Q0, 0, 4),
            (Q1, 0, 4),
        ]


@played()
async def test_a_topic_without_a_route_is_refused(stage: SimStage) -> None:
    with pytest.raises(ResponseError) as refused:
        await make_preview(await stage.admin(), "NoTopic", GROUP, 0)
    assert refused.value.code == ResponseCode.TOPIC_NOT_EXIST


@pytest.mark.parametrize(
    ("mode", "stays"),
    [(ResetMode.CLASSIC, [2, 3]), (ResetMode.SERVER, []), (ResetMode.FENCED, []), (None, [2, 3])],
)
@played()
async def test_queues_beyond_the_write_queues_stay_in_a_classic_reset(
    stage: SimStage, mode: ResetMode | None, stays: list[int]
) -> None:
    """``updateTopic -r 4 -w 2``, the usual way to shrink a topic; the broker's own mode is classic."""
    async with new_consumer(stage):
        await stage.create_topic(TOPIC, 4)
        await stage.send(10, TOPIC)
        await stage.create_topic(TOPIC, 2, read=4)
        await stage.world.sleep(20)
        stage.consumed.clear()
        admin = await stage.admin()
        preview = await make_preview(admin, TOPIC, GROUP, 0, mode=mode)
        assert [row.queue.queue_id for row in preview.queues if row.stays] == stays
        assert preview.redelivered == 40 - 10 * len(stays)
        text = "broker-a:2, broker-a:3 will stay: a classic reset moves write queues only"
        assert preview.obstacles == ((text,) if stays else ())
        await admin.resets.reset(TOPIC, GROUP, 0, mode=mode)
        await stage.world.sleep(60)
        assert len(stage.consumed) == preview.redelivered


@played()
async def test_queues_that_no_consumer_reads_are_moved_without_messages(stage: SimStage) -> None:
    await consumed(stage)
    for queue in (Q0, Q1):
        stage.brokers["broker-a"].context.offsets.table.commit(GROUP, TOPIC, queue.queue_id, 4)
    await stage.create_topic(TOPIC, 2, read=1)
    admin = await stage.admin()
    fenced = await make_preview(admin, TOPIC, GROUP, 0, mode=ResetMode.FENCED)
    assert [(row.redelivered, row.stays) for row in fenced.queues] == [(4, False), (0, False)]
    assert any(note.startswith("no consumer reads broker-a:1: ") for note in fenced.notes)
    written = await make_preview(admin, TOPIC, GROUP, 0)
    assert [(row.redelivered, row.stays) for row in written.queues] == [(4, False), (0, True)]
    assert written.obstacles == (
        "broker-a:1 will stay: without consumers, offsets of read queues are written",
    )


@pytest.mark.parametrize("mode", ResetMode)
@played()
async def test_of_a_group_that_exists_and_never_connected_there_is_one_story(
    stage: SimStage, mode: ResetMode
) -> None:
    await consumed(stage)
    admin = await stage.admin()
    settings = SubscriptionGroupConfig(group_name=GROUP)
    await admin.groups.create_and_update_subscription_group_config(
        stage.brokers["broker-a"].address, settings
    )
    preview = await make_preview(admin, TOPIC, GROUP, 0, mode=mode)
    starts = any("the next consumer starts there" in note for note in preview.notes)
    assert not any("check the group's name" in note for note in preview.notes)
    is_refused = mode is ResetMode.CLASSIC
    assert (len(preview.obstacles), starts) == (is_refused, not is_refused)
    if is_refused:
        with pytest.raises(ResponseError, match="THe consumer group <rewinders> not exist"):
            await admin.resets.reset(TOPIC, GROUP, 0, mode=mode)
    else:
        await admin.resets.reset(TOPIC, GROUP, 0, mode=mode)
        assert await admin.groups.stored_offset(GROUP, Q0) == 0


@played()
async def test_the_preview_names_what_a_time_means_at_each_broker(stage: SimStage) -> None:
    """The current time is the last message up to 5.1.0, and the end from 5.1.1 on."""
    await stage.start_broker("broker-b", profile=Profile.V53)
    async with new_consumer(stage):
        await consumed(stage)
        admin = await stage.admin(profile=Profile.V53)
        preview = await make_preview(admin, TOPIC, GROUP, admin.parse_timestamp("now"))
    assert [(row.queue.broker_name, row.target) for row in preview.queues[::2]] == [
        ("broker-a", 3),
        ("broker-b", 4),
    ]
    nearest, first = [note for note in preview.notes if note.startswith("the time")]
    assert nearest.startswith("the time at broker-a: the message nearest to it, and after the last ")
    assert first.startswith("the time at broker-b: the first message stored then or later, and else ")


@pytest.mark.parametrize("broker", RELEASES)
@pytest.mark.parametrize("tool", RELEASES)
def test_what_now_means_is_decided_by_tool_and_broker(
    play: RunScenario, tool: Profile, broker: Profile
) -> None:
    """docs/reset.md, "What a time means": up to 5.1.0, the current time leaves the last message."""

    async def scenario(stage: SimStage) -> None:
        async with new_consumer(stage):
            await consumed(stage)
            admin = await stage.admin(profile=tool)
            now = admin.parse_timestamp("now")
            is_left = tool is not Profile.V49 and broker is not Profile.V53
            preview = await make_preview(admin, TOPIC, GROUP, now)
            assert {row.target for row in preview.queues} == {3 if is_left else 4}
            result = await admin.resets.reset(TOPIC, GROUP, now)
            assert result.offset_table == {row.queue: row.target for row in preview.queues}

    play(scenario, profile=broker)


@pytest.mark.parametrize(("profile", "target"), [(Profile.V42, 0), (Profile.V49, 0), (Profile.V53, 4)])
@played()
async def test_other_negative_times_are_the_start_or_the_end(
    stage: SimStage, profile: Profile, target: int
) -> None:
    """RocketMQ's own tools send ``-s -2`` as it is."""
    async with new_consumer(stage):
        await consumed(stage)
        admin = await stage.admin()
        preview = await make_preview(admin, TOPIC, GROUP, -2)
        result = await admin.resets.reset(TOPIC, GROUP, -2)
    assert {*result.offset_table.values()} == {target} == {row.target for row in preview.queues}
    end = "start" if target == 0 else "end"
    assert f"the time at broker-a: the {end} of every queue" in preview.notes
