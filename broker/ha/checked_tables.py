"""Removes entries from a master's tables that this broker would refuse from a client.

A slave's tables are files that become a master's when the slave is started as one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rewindmq.protocol.body.group import SubscriptionGroupConfig, SubscriptionGroupWrapper
from rewindmq.protocol.body.registration import TopicConfig, TopicConfigSerializeWrapper
from rewindmq.protocol.limits import MAX_GROUP_LENGTH, MAX_QUEUE_NUMS, MAX_TOPIC_LENGTH
from rewindmq.protocol.names import is_path_name

_SEPARATOR: Final = "@"
# A retry topic has the name of a group.
_MAX_KEY_LENGTH: Final = 2 * MAX_GROUP_LENGTH + MAX_TOPIC_LENGTH
# RocketMQ has 18 levels unless messageDelayLevel has more.
_MAX_DELAY_LEVEL: Final = 1_000


def checked_topics(wrapper: TopicConfigSerializeWrapper) -> TopicConfigSerializeWrapper:
    """Return the topics with a name that can be a folder, and with valid numbers of queues."""
    table = wrapper.topic_config_table
    valid = {name: topic for name, topic in table.items() if _is_topic(name, topic)}
    return TopicConfigSerializeWrapper(valid, wrapper.data_version)


def _is_topic(name: str, topic: TopicConfig) -> bool:
    return (
        is_path_name(name)
        and name.isprintable()
        and name == topic.topic_name
        and 0 <= topic.read_queue_nums <= MAX_QUEUE_NUMS
        and 0 <= topic.write_queue_nums <= MAX_QUEUE_NUMS
    )


def checked_groups(wrapper: SubscriptionGroupWrapper) -> SubscriptionGroupWrapper:
    """Return the groups with a valid name."""
    table = wrapper.subscription_group_table
    valid = {name: group for name, group in table.items() if _is_group(name, group)}
    return SubscriptionGroupWrapper(valid, wrapper.data_version)


def _is_group(name: str, group: SubscriptionGroupConfig) -> bool:
    return is_path_name(name) and name.isprintable() and name == group.group_name


def checked_offsets(table: Mapping[str, Mapping[int, int]]) -> dict[str, dict[int, int]]:
    """Return the offsets that are not negative, of ``topic@group`` keys and of queue ids from 0 on."""
    return {
        key: {queue_id: offset for queue_id, offset in queues.items() if queue_id >= 0 and offset >= 0}
        for key, queues in table.items()
        if _SEPARATOR in key and len(key) <= _MAX_KEY_LENGTH and key.isprintable()
    }


def checked_delay_offsets(table: Mapping[int, int]) -> dict[int, int]:
    """Return the offsets that are not negative, of possible delay levels."""
    return {level: offset for level, offset in table.items() if 0 < level <= _MAX_DELAY_LEVEL and offset >= 0}
