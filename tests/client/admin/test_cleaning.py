"""deleteTopic, cleanUnusedTopic, cleanExpiredCQ, deleteExpiredCommitLog."""

from __future__ import annotations

import pytest

from rewindmq.client.admin.deleted_topic import DeletedTopic, KeptOffsets
from rewindmq.protocol.errors import ClientError, ResponseError
from rewindmq.protocol.names import retry_topic
from rewindmq.protocol.profile import Profile
from tests.client.admin.support import GROUP, TOPIC, new_consumer
from tests.support.fixtures import played
from tests.support.stage import SimStage


@pytest.mark.parametrize(("profile", "kept"), [(Profile.V42, 1), (Profile.V49, 1), (Profile.V53, -1)])
@played(brokers=2)
async def test_delete_topic_deletes_at_masters_and_name_servers_and_names_groups_that_will_skip_messages(
    stage: SimStage, profile: Profile, kept: int
) -> None:
    await stage.create_topic(TOPIC, 2)
    await stage.send(2, TOPIC)
    a, b = stage.brokers.values()
    a.context.offsets.table.commit(GROUP, TOPIC, 0, 1)
    a.context.offsets.table.commit(GROUP, TOPIC, 1, 30)
    b.context.offsets.table.commit(GROUP, TOPIC, 0, 0)
    b.context.offsets.table.commit("Other", TOPIC, 0, 2)
    b.context.offsets.table.commit("Other", TOPIC + "2", 0, 2)
    kept_at = "NOTE: {} keeps the offsets of group {}: in a new topic {} it skips the first {}"
    notes = [
        kept_at.format(a.address, GROUP, TOPIC, "message of queue 0, the first 30 messages of queue 1"),
        kept_at.format(b.address, "Other", TOPIC, "2 messages of queue 0"),
        (
            "NOTE: reset these groups when the topic exists again: rewindmq admin resetOffsetByTime"
            f" -t {TOPIC} -s 0 -g GROUP"
        ),
    ]
    assert await stage.run(f"deleteTopic -c DefaultCluster -t {TOPIC}") == [
        f"delete topic [{TOPIC}] from cluster [DefaultCluster] success.",
        *(notes if kept > 0 else ()),
    ]
    for broker in stage.brokers.values():
        assert broker.context.tables.topics.find(TOPIC) is None
        assert broker.context.store.max_offset(TOPIC, 0) == 0
    assert a.context.offsets.table.query(GROUP, TOPIC, 0) == kept
    with pytest.raises(ResponseError, match="No topic route info"):
        await (await stage.admin()).topics.examine_topic_route_info(TOPIC)
    # The brokers' next registrations do not restore the topic.
    await stage.world.sleep(70)
    assert TOPIC not in await stage.run("topicList")


@played()
async def test_the_group_that_delete_topic_names_gets_all_messages_after_the_reset_that_it_names(
    stage: SimStage,
) -> None:
    """Without the reset, 0 of 8: apache/rocketmq 2743."""
    await stage.create_topic(TOPIC, 1)
    await stage.send(8, TOPIC)
    consumer = new_consumer(stage)
    await consumer.start()
    await stage.until(lambda: len(stage.consumed) == 8)
    await consumer.shutdown()
    *_, advice = await stage.run(f"deleteTopic -c DefaultCluster -t {TOPIC}")
    await stage.create_topic(TOPIC, 1)
    await stage.send(8, TOPIC)
    stage.consumed.clear()
    await stage.run(advice.partition("rewindmq admin ")[2].replace("GROUP", GROUP))
    await new_consumer(stage).start()
    await stage.until(lambda: len(stage.consumed) == 8)


@played()
async def test_delete_sub_group_names_offsets_of_the_retry_topic_that_stay(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 1)
    offsets = stage.brokers["broker-a"].context.offsets.table
    for is_removed in ("true", "false"):
        offsets.commit(GROUP, retry_topic(GROUP), 0, 5)
        lines = await stage.run(f"deleteSubGroup -c DefaultCluster -g {GROUP} -r {is_removed}")
        skips = f"in a new topic {retry_topic(GROUP)} it skips the first 5 messages of queue 0"
        assert any(skips in line for line in lines) == (is_removed == "false")


def test_delete_topic_says_at_which_broker_it_cannot_know() -> None:
    kept = [KeptOffsets("b", f"G{number:02}", dict.fromkeys(range(10), 5)) for number in range(25)]
    *groups, more, advice, unknown = DeletedTopic("T", ["a", "b"], kept, {"a": "no answer"}).notes()
    assert len(groups) == 20
    assert groups[0].endswith("of queue 7, and messages of 2 more queues")
    assert more == "NOTE: so do 5 more groups; --json lists them"
    assert advice.endswith("resetOffsetByTime -t T -s 0 -g GROUP")
    assert unknown == "NOTE: it is unknown which groups have offsets in T at a: no answer"


@played()
async def test_delete_topic_in_an_unknown_cluster_is_an_error(stage: SimStage) -> None:
    with pytest.raises(ClientError, match="knows no cluster"):
        await stage.run(f"deleteTopic -c Nowhere -t {TOPIC}")


@played(brokers=2)
async def test_the_cleaning_commands_reach_every_master(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 2)
    await stage.send(1, TOPIC)
    for broker in stage.brokers.values():
        broker.context.tables.topics.delete(TOPIC)
    addresses = [broker.address for broker in stage.brokers.values()]
    assert await stage.run("cleanUnusedTopic -c DefaultCluster") == [
        f"{address}: queues of unknown topics removed" for address in addresses
    ]
    assert all(broker.context.store.max_offset(TOPIC, 0) == 0 for broker in stage.brokers.values())
    assert await stage.data(f"cleanExpiredCQ -b {addresses[0]}") == {
        "brokerAddr": addresses[0],
        "success": True,
    }
    assert await stage.run(f"deleteExpiredCommitLog -b {addresses[1]}") == [
        f"{addresses[1]}: expired files will be deleted within 10 s"
    ]
