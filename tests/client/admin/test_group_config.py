"""updateSubGroup, getConsumerConfig and deleteSubGroup: their output, and the brokers' tables.

Specification: docs/spec/admin.md 2.2.
"""

from __future__ import annotations

import pytest

from rewindmq.protocol.body.group import SubscriptionGroupConfig
from rewindmq.protocol.errors import ClientError, ResponseError
from rewindmq.protocol.profile import Profile
from tests.client.admin.support import TOPIC
from tests.support.fixtures import played
from tests.support.stage import SimStage


@played(brokers=2)
async def test_a_group_is_created_shown_and_overwritten(stage: SimStage) -> None:
    lines = await stage.run("updateSubGroup -c DefaultCluster -g G1 -r 3 -q 2")
    assert lines[:2] == [
        "create subscription group to 10.0.1.1:10911 success.",
        "create subscription group to 10.0.1.2:10911 success.",
    ]
    shown = await stage.run("getConsumerConfig -g G1")
    rule = "=" * 28
    assert shown[0] == f"{rule}DefaultCluster:broker-a{rule}"
    for name, value in (
        ("groupName", "G1"),
        ("retryMaxTimes", "3"),
        ("retryQueueNums", "2"),
        ("consumeBroadcastEnable", "false"),
        ("notifyConsumerIdsChangedEnable", "true"),
    ):
        assert f"{name:<40}=  {value}" in shown
    await stage.run("updateSubGroup -b 10.0.1.1:10911 -g G1")
    shown = await stage.run("getConsumerConfig -g G1")
    assert [line for line in shown if "retryMaxTimes" in line] == [
        f"{'retryMaxTimes':<40}=  16",
        f"{'retryMaxTimes':<40}=  3",
    ]
    with pytest.raises(ClientError, match="no broker has settings of a group named 'unknown'"):
        await stage.run("getConsumerConfig -g unknown")


@played()
async def test_a_group_is_deleted_with_its_topics_and_offsets(stage: SimStage) -> None:
    await stage.create_topic(TOPIC, 2)
    await stage.run("updateSubGroup -c DefaultCluster -g G1")
    broker = stage.brokers["broker-a"].context
    broker.tables.topics.ensure("%RETRY%G1", 1)
    broker.offsets.table.commit("G1", "TopicTest", 0, 5)
    broker.offsets.table.commit("G2", "TopicTest", 0, 6)
    await stage.run("deleteSubGroup -b 10.0.1.1:10911 -g G1")
    assert broker.tables.groups.get("G1") is None
    assert broker.offsets.table.query("G1", "TopicTest", 0) == 5
    await stage.run("deleteSubGroup -c DefaultCluster -g G1 -r true")
    assert broker.offsets.table.query("G1", "TopicTest", 0) == -1
    assert broker.offsets.table.query("G2", "TopicTest", 0) == 6
    assert broker.tables.topics.find("%RETRY%G1") is None
    with pytest.raises(ClientError, match="no broker has settings"):
        await stage.run("getConsumerConfig -g G1")


@pytest.mark.parametrize(
    ("group", "words"),
    [
        (SubscriptionGroupConfig("a/b"), "illegal characters"),
        (SubscriptionGroupConfig(""), "blank"),
        (SubscriptionGroupConfig("G", retry_queue_nums=65_536), "retryQueueNums 65536"),
    ],
)
@played()
async def test_invalid_group_settings_are_refused(
    stage: SimStage, group: SubscriptionGroupConfig, words: str
) -> None:
    address = stage.brokers["broker-a"].address
    admin = await stage.admin()
    with pytest.raises(ResponseError, match=words):
        await admin.groups.create_and_update_subscription_group_config(address, group)
    assert stage.brokers["broker-a"].context.tables.groups.get(group.group_name) is None


@played(profile=Profile.V53)
async def test_set_consume_mode_prints_what_mqadmin_does_and_brokers_store_it(stage: SimStage) -> None:
    await stage.create_topic("T")
    lines = await stage.run("setConsumeMode -c DefaultCluster -t T -g G1 -m POP -q 2")
    assert lines == [
        "set consume mode to 10.0.1.1:10911 success.",
        "topic[T] group[G1] consume mode[POP] popShareQueueNum[2]",
    ]
    stored = stage.broker.context.tables.request_modes.get("T", "G1")
    assert stored is not None
    assert (stored.mode, stored.pop_share_queue_num) == ("POP", 2)
    with pytest.raises(ResponseError, match="retry topic is not allowed to set mode"):
        await stage.run("setConsumeMode -b 10.0.1.1:10911 -t %RETRY%G1 -g G1 -m POP")
