"""Groups without a consumer: those that have offsets and never connected, and those that no broker knows."""

from __future__ import annotations

import pytest

from rewindmq import MessageQueue
from rewindmq.protocol.body.group import SubscriptionGroupConfig
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import ResponseError
from rewindmq.protocol.profile import RELEASES, Profile
from tests.client.admin.support import GROUP, TOPIC, new_consumer
from tests.support.fixtures import played
from tests.support.stage import SimStage


async def copy_offsets(stage: SimStage) -> None:
    """Let a group consume 3 messages in each queue, copy its offsets to "copy", then send as many again."""
    await stage.create_topic(TOPIC, 2)
    await stage.send(3, TOPIC)
    async with new_consumer(stage):
        await stage.world.sleep(30)
    await stage.run(f"cloneGroupOffset -s {GROUP} -d copy -t {TOPIC}")
    await stage.send(3, TOPIC)
    await stage.world.sleep(1)


@pytest.mark.parametrize("profile", RELEASES)
@played(brokers=2)
async def test_a_group_with_offsets_that_never_connected_is_found(stage: SimStage, profile: Profile) -> None:
    await copy_offsets(stage)
    data = await stage.data("consumerProgress -g copy")
    assert {(row["topic"], row["consumerOffset"], row["diff"]) for row in data["queues"]} == {(TOPIC, 3, 3)}
    assert (len(data["queues"]), data["diffTotal"]) == (4, 12)
    lines = await stage.run("consumerProgress")
    (row,) = (line.split() for line in lines if line.startswith("copy "))
    assert row == ["copy", "0", "OFFLINE", "0", "12"]
    admin = await stage.admin()
    assert await admin.groups.consumer_groups() == ["copy", GROUP]
    with pytest.raises(ResponseError) as refused:
        await stage.run("consumerConnection -g copy")
    assert refused.value.code == ResponseCode.CONSUMER_NOT_ONLINE
    # Its offsets can be copied on.
    data = await stage.data("cloneGroupOffset -s copy -d again --all-topics")
    assert len(data["queues"]) == 4


@played(brokers=2)
async def test_offsets_at_a_broker_to_which_the_group_never_connected_count(stage: SimStage) -> None:
    # Consumers of the group know only the brokers of the topic, here one.
    await stage.peer(address=stage.brokers["broker-a"].address).create_topic("OnlyA", write=1, read=1)
    await stage.create_topic("Both", 1)
    async with stage.push_consumer(group=GROUP, topic="OnlyA", host="10.0.2.1"):
        await stage.world.sleep(1)
    stage.brokers["broker-b"].context.offsets.table.commit(GROUP, "Both", 0, 0)
    admin = await stage.admin()
    table = (await admin.groups.examine_consume_stats(GROUP)).offset_table
    assert MessageQueue("Both", "broker-b", 0) in table
    # A queue without a stored offset is listed only at brokers to which the group connected.
    table = (await admin.groups.examine_consume_stats(GROUP, "Both")).offset_table
    assert {queue.broker_name for queue in table} == {"broker-a", "broker-b"}


@pytest.mark.parametrize(
    "line",
    [
        "consumerProgress -g",
        "consumerConnection -g",
        "consumerStatus -g",
        "consumerStatus -i nobody -g",
    ],
)
@pytest.mark.parametrize("name", ["strangers", "no group", "%RETRY%strangers", "a@b", "x" * 300, ""])
@played(brokers=2)
async def test_an_unknown_group_is_named_with_what_to_do_next(stage: SimStage, line: str, name: str) -> None:
    await stage.create_topic(TOPIC, 2)
    with pytest.raises(ResponseError) as refused:
        await stage.run_arguments([*line.split(), name])
    assert refused.value.code == ResponseCode.TOPIC_NOT_EXIST
    assert f"there is no group {name!r}" in refused.value.remark
    assert "rewindmq lag lists the groups" in refused.value.remark


@played()
async def test_a_group_that_was_only_created_is_known(stage: SimStage) -> None:
    admin = await stage.admin()
    config = SubscriptionGroupConfig(group_name="created")
    await admin.groups.create_and_update_subscription_group_config(stage.broker.address, config)
    for line in ("consumerProgress -g created", "consumerConnection -g created"):
        with pytest.raises(ResponseError) as refused:
            await stage.run(line)
        assert refused.value.code == ResponseCode.CONSUMER_NOT_ONLINE
    # Without a consumer or an offset there is nothing to list.
    assert await admin.groups.consumer_groups() == []
