"""Configuration files of RocketMQ 5.5.0, opened and saved again, keep fields that RewindMQ does not know.

The members are those that a real 5.5.0 broker wrote after a consumer had connected; names and numbers that
do not matter are cut.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.offsets.delay_offsets import DelayOffsets
from rewindmq.broker.store.errors import StoreError
from rewindmq.broker.store.tables.config_file import ConfigFile
from rewindmq.broker.store.tables.consumer_offset import ConsumerOffsetTable
from rewindmq.broker.tables.subscription_group import SubscriptionGroupManager
from rewindmq.broker.tables.topic_config import TopicConfigManager
from rewindmq.protocol.body.group import SubscriptionGroupConfig, SubscriptionGroupWrapper
from rewindmq.protocol.body.registration import TopicConfig
from rewindmq.protocol.codec import fastjson

VERSION = '"dataVersion":{"counter":5,"stateVersion":3,"timestamp":1795323070816}'
GROUPS = (
    "{" + VERSION + ',"forbiddenTable":{"G":{"T":4}},"subscriptionGroupTable":{"G":{"attributes":{"+a":"b"},'
    '"brokerId":0,"consumeBroadcastEnable":true,"consumeEnable":true,"consumeFromMinEnable":true,'
    '"consumeMessageOrderly":true,"consumeTimeoutMinute":15,"groupName":"G","groupRetryPolicy":'
    '{"type":"EXPONENTIAL","exponentialRetryPolicy":{"initial":5000,"max":7200000,"multiplier":2}},'
    '"groupSysFlag":0,"notifyConsumerIdsChangedEnable":true,"retryMaxTimes":16,"retryQueueNums":1,'
    '"whichBrokerWhenConsumeSlowly":1}}}'
)
TOPICS = (
    "{" + VERSION + ',"topicConfigTable":{"T":{"attributes":{"message.type":"DELAY"},"order":false,"perm":6,'
    '"readQueueNums":2,"topicFilterType":"SINGLE_TAG","topicName":"T","topicSysFlag":0,"writeQueueNums":2}}}'
)
OFFSETS = (
    "{"
    + VERSION
    + ',"groupTopicMap":{"G":["T"]},"offsetTable":{"T@G":{0:4,1:4}},"pullOffsetTable":{"T@G":{0:4}}}'
)
# Gives a file with a text, and what reads it again.
Opened = Callable[[str], tuple[ConfigFile, Callable[[], dict[str, Any]]]]
LEVELS = "{" + VERSION + ',"offsetTable":{1:3,18:0}}'


def now() -> int:
    return 1_800_000_000_000


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    """Gives a file with a text, and what reads it again."""

    def write(text: str) -> tuple[ConfigFile, Callable[[], dict[str, Any]]]:
        path = tmp_path / "file.json"
        path.write_text(text)
        return ConfigFile(path), lambda: fastjson.loads(path.read_bytes())

    return write


def test_groups_keep_what_5_x_has_of_them(opened: Opened) -> None:
    file, saved = opened(GROUPS)
    groups = SubscriptionGroupManager(file, now, auto_create=True)
    groups.load()
    groups.update(SubscriptionGroupConfig("H"))
    groups.update(SubscriptionGroupConfig("G", retry_max_times=3))
    groups.persist()
    before, after = fastjson.loads(GROUPS.encode()), saved()
    assert after["forbiddenTable"] == {"G": {"T": 4}}
    assert after["subscriptionGroupTable"]["G"] == before["subscriptionGroupTable"]["G"] | {
        "retryMaxTimes": 3
    }
    assert after["subscriptionGroupTable"]["H"] == msgspec.to_builtins(SubscriptionGroupConfig("H"))
    assert after["dataVersion"] == {"counter": 7, "stateVersion": 3, "timestamp": now()}


def test_topics_keep_the_version_that_5_x_gave_them(opened: Opened) -> None:
    file, saved = opened(TOPICS)
    topics = TopicConfigManager(BrokerConfig(), file, now)
    topics.load()
    topics.update(TopicConfig("U"))
    topics.persist()
    before, after = fastjson.loads(TOPICS.encode()), saved()
    assert after["topicConfigTable"]["T"] == before["topicConfigTable"]["T"]
    assert "attributes" not in after["topicConfigTable"]["U"]
    assert after["dataVersion"] == {"counter": 6, "stateVersion": 3, "timestamp": now()}


def test_whatever_can_be_read_is_kept_so_that_it_can_be_read_again(opened: Opened) -> None:
    table = '{{"brokerName":"b","queueId":1,"topic":"T"}:{"x":[1]},7:2,"a":3}'
    text = TOPICS.removesuffix("}") + f',"someTable":{table}' + "}"
    file, saved = opened(text)
    topics = TopicConfigManager(BrokerConfig(), file, now)
    topics.load()
    topics.update(TopicConfig("U"))
    topics.persist()
    assert saved()["someTable"] == fastjson.loads(table)


def test_a_group_that_is_created_again_has_no_fields_of_its_predecessor(opened: Opened) -> None:
    file, saved = opened(GROUPS)
    groups = SubscriptionGroupManager(file, now, auto_create=True)
    groups.load()
    groups.delete("G")
    groups.update(SubscriptionGroupConfig("G"))
    groups.persist()
    assert saved()["subscriptionGroupTable"]["G"] == msgspec.to_builtins(SubscriptionGroupConfig("G"))


def test_groups_copied_from_a_master_lose_unknown_fields(opened: Opened) -> None:
    file, saved = opened(GROUPS)
    groups = SubscriptionGroupManager(file, now, auto_create=True)
    groups.load()
    groups.take_over(SubscriptionGroupWrapper({"G": SubscriptionGroupConfig("G")}))
    groups.persist()
    assert saved()["subscriptionGroupTable"]["G"] == msgspec.to_builtins(SubscriptionGroupConfig("G"))
    assert "forbiddenTable" not in saved()


def test_groups_that_the_disk_refused_are_written_next_time(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, saved = opened(GROUPS)
    groups = SubscriptionGroupManager(file, now, auto_create=True)
    groups.load()

    def refuse(value: Any) -> None:
        raise StoreError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(file, "save", refuse)
        groups.update(SubscriptionGroupConfig("H"))
        with pytest.raises(StoreError, match="no space left"):
            groups.persist()
    assert "H" not in saved()["subscriptionGroupTable"]
    assert not groups.is_saved("H")
    groups.persist()
    assert groups.is_saved("H")
    assert saved()["subscriptionGroupTable"].keys() >= {"G", "H"}
    assert saved()["forbiddenTable"] == {"G": {"T": 4}}


def test_offsets_keep_their_version_and_nothing_that_would_grow_stale(opened: Opened, tmp_path: Path) -> None:
    _, saved = opened(OFFSETS)
    offsets = ConsumerOffsetTable(tmp_path / "file.json")
    offsets.load()
    offsets.commit("G", "T", 0, 9)
    assert offsets.persist()
    assert saved() == {
        "dataVersion": {"counter": 5, "stateVersion": 3, "timestamp": 1795323070816},
        "offsetTable": {"T@G": {0: 9, 1: 4}},
    }


def test_delay_levels_keep_their_version(opened: Opened) -> None:
    file, saved = opened(LEVELS)
    levels = DelayOffsets(file)
    levels.load()
    levels.save({1: 4, 18: 0})
    assert saved()["dataVersion"] == {"counter": 5, "stateVersion": 3, "timestamp": 1795323070816}
    assert saved()["offsetTable"] == {1: 4, 18: 0}
