"""cloneGroupOffset: copies the offsets of one topic, or of all topics except the retry topic."""

from __future__ import annotations

import pytest

from rewindmq import MessageQueue
from rewindmq.protocol.errors import ClientError, ResponseError
from rewindmq.protocol.profile import RELEASES, Profile
from tests.client.admin.support import GROUP, TOPIC, new_consumer
from tests.support.fixtures import played
from tests.support.stage import SimStage


def offsets(stage: SimStage, group: str, topic: str = TOPIC) -> dict[str, dict[int, int]]:
    return {
        name: broker.context.offsets.table.offsets_of(group, topic) for name, broker in stage.brokers.items()
    }


async def store_offsets(stage: SimStage) -> None:
    """Store the group's offsets: 3 in each queue of the topic, 8 in one queue of another topic."""
    await stage.create_topic(TOPIC, 2)
    await stage.create_topic("Other", 2)
    await stage.send(3, TOPIC)
    async with new_consumer(stage):
        await stage.world.sleep(30)
    for broker in stage.brokers.values():
        broker.context.offsets.table.commit(GROUP, "Other", 0, 8)
    await stage.world.sleep(1)


@pytest.mark.parametrize("profile", RELEASES)
@played(brokers=2)
async def test_only_the_named_topic_is_copied_at_every_broker(stage: SimStage, profile: Profile) -> None:
    await store_offsets(stage)
    assert await stage.run(f"cloneGroupOffset -s {GROUP} -d copy -t {TOPIC} -o true") == [
        f"clone group offset success. srcGroup[{GROUP}], destGroup=[copy], topic[{TOPIC}]"
    ]
    assert offsets(stage, "copy") == {"broker-a": {0: 3, 1: 3}, "broker-b": {0: 3, 1: 3}}
    assert offsets(stage, "copy", "Other") == {"broker-a": {}, "broker-b": {}}


@played()
async def test_all_topics_are_copied_except_the_retry_topic(stage: SimStage) -> None:
    await store_offsets(stage)
    data = await stage.data(f"cloneGroupOffset -s {GROUP} -d copy --all-topics")
    assert {queue["topic"] for queue in data["queues"]} == {TOPIC, "Other"}
    assert offsets(stage, "copy", "Other") == {"broker-a": {0: 8}}
    assert offsets(stage, "copy", f"%RETRY%{GROUP}") == {"broker-a": {}}
    row = {"topic": TOPIC, "brokerName": "broker-a", "queueId": 0, "offset": 3}
    assert row in data["queues"]
    admin = await stage.admin()
    result = await admin.resets.clone_group_offset(GROUP, "again", TOPIC)
    assert result.topics == [TOPIC]
    assert result.offset_table[MessageQueue(TOPIC, "broker-a", 1)] == 3


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (f"-s {GROUP} -d copy", "name a topic with -t, or give --all-topics"),
        (f"-s {GROUP} -d copy -t {TOPIC} --all-topics", "name a topic with -t, or give --all-topics"),
        (f"-s {GROUP} -d {GROUP} -t {TOPIC}", "both the source and the destination"),
        (f"-s unknown -d copy -t {TOPIC}", "CODE: 206  DESC: group unknown has no offsets in TopicTest"),
        (f"-s {GROUP} -d copy -t Nowhere", "CODE: 17"),
    ],
)
@played()
async def test_a_copy_that_is_refused_names_the_reason(stage: SimStage, words: str, expected: str) -> None:
    await store_offsets(stage)
    with pytest.raises((ClientError, ResponseError)) as refused:
        await stage.run(f"cloneGroupOffset {words}")
    assert expected in str(refused.value)
    assert offsets(stage, "copy") == {"broker-a": {}}
