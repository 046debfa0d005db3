"""Headers about clients: 34, 35, 38, 40, 307 (docs/spec/protocol.md 3.2)."""

from __future__ import annotations

from typing import Final

from msgspec import field

from rewindmq.protocol.command import CommandHeader

# RewindMQ's own ext field of HEART_BEAT (34): the client's time scale; in the response, the broker's.
TIME_SCALE: Final = "timeScale"


class HeartbeatResponseHeader(CommandHeader):
    """Response to HEART_BEAT (34). Without both fields, 5.x clients keep the first heartbeat format."""

    is_support_heart_beat_v2: bool | None = field(name="IS_SUPPORT_HEART_BEAT_V2", default=None)
    is_sub_change: bool | None = field(name="IS_SUB_CHANGE", default=None)


class UnregisterClientRequestHeader(CommandHeader):
    """A client leaves one producer or consumer group, UNREGISTER_CLIENT (35)."""

    client_id: str = field(name="clientID")
    producer_group: str | None = None
    consumer_group: str | None = None


class GetConsumerListByGroupRequestHeader(CommandHeader):
    """The client ids of a consumer group, GET_CONSUMER_LIST_BY_GROUP (38)."""

    consumer_group: str


class NotifyConsumerIdsChangedRequestHeader(CommandHeader):
    """A group's consumers or subscriptions changed, NOTIFY_CONSUMER_IDS_CHANGED (40)."""

    consumer_group: str


class GetConsumerRunningInfoRequestHeader(CommandHeader):
    """The state of a consumer, GET_CONSUMER_RUNNING_INFO (307); the broker forwards it unchanged."""

    consumer_group: str
    client_id: str
    jstack_enable: bool = False
