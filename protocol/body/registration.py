"""Topics of a broker: bodies of 103, 18, 21, 322, 351 (docs/spec/protocol.md 5.4)."""

from __future__ import annotations

from enum import StrEnum

from msgspec import field

from rewindmq.protocol.body import RemotingBody
from rewindmq.protocol.integers import Int32, Int64


class TopicFilterType(StrEnum):
    """Whether messages of a topic carry one tag or several."""

    SINGLE_TAG = "SINGLE_TAG"
    MULTI_TAG = "MULTI_TAG"


class TopicConfig(RemotingBody):
    """A topic's settings at a broker. ``perm`` is a ``Perm``, ``topic_sys_flag`` a ``TopicSysFlag``."""

    topic_name: str
    read_queue_nums: Int32 = 16
    write_queue_nums: Int32 = 16
    perm: Int32 = 6
    topic_filter_type: TopicFilterType = TopicFilterType.SINGLE_TAG
    topic_sys_flag: Int32 = 0
    order: bool = False
    # 5.x only.
    attributes: dict[str, str] | None = None


class CreateTopicListRequestBody(RemotingBody):
    """Settings of several topics, UPDATE_AND_CREATE_TOPIC_LIST (18); attribute names have signs. 5.x only."""

    topic_config_list: list[TopicConfig]


class DataVersion(RemotingBody):
    """The version of a table; two are equal when both members are. ``timestamp`` is ms."""

    timestamp: Int64 = 0
    counter: Int64 = 0
    # 5.x only.
    state_version: Int64 | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DataVersion):
            return NotImplemented
        return self.timestamp == other.timestamp and self.counter == other.counter

    def __hash__(self) -> int:
        return hash((self.timestamp, self.counter))


class TopicConfigSerializeWrapper(RemotingBody):
    """Every topic of a broker and the version of that table, GET_ALL_TOPIC_CONFIG (21)."""

    topic_config_table: dict[str, TopicConfig] = field(default_factory=dict)
    data_version: DataVersion = field(default_factory=DataVersion)


class RegisterBrokerBody(RemotingBody):
    """What a broker registers, REGISTER_BROKER (103). Brokers before 3.0.11 send only the wrapper."""

    topic_config_serialize_wrapper: TopicConfigSerializeWrapper = field(
        default_factory=TopicConfigSerializeWrapper
    )
    filter_server_list: list[str] = field(default_factory=list)
