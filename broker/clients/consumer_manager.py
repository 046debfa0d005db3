"""Online consumer groups: their connections and subscriptions (docs/spec/broker.md B.3).

Source: RocketMQ 4.9.4 ``ConsumerManager`` and ``ConsumerGroupInfo``. A consumer is identified by its
connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from rewindmq.broker.clients.channel import ClientChannel
from rewindmq.broker.limits import MAX_GROUPS, check_room
from rewindmq.protocol.body.heartbeat import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    MessageModel,
    SubscriptionData,
)
from rewindmq.protocol.remoting.connection import Connection


@dataclass(slots=True)
class ConsumerGroup:
    """A group with at least one channel.

    Attributes:
        consume_type, message_model, consume_from_where: from the latest heartbeat of any consumer. If
            consumers disagree, each heartbeat changes the whole group.
        subscriptions: topic to subscription, merged over the consumers.
        channels: in order of registration.
    """

    name: str
    consume_type: ConsumeType
    message_model: MessageModel
    consume_from_where: ConsumeFromWhere
    subscriptions: dict[str, SubscriptionData] = field(default_factory=dict)
    channels: dict[Connection, ClientChannel] = field(default_factory=dict)

    def client_ids(self) -> list[str]:
        """Return the consumers' client ids; a client with two connections is listed once."""
        return list(dict.fromkeys(channel.client_id for channel in self.channels.values()))

    def merge(self, subscriptions: Iterable[SubscriptionData]) -> bool:
        """Merge one heartbeat's subscriptions; return True if a topic was added or removed.

        The newer version of a topic's subscription wins. Topics that the heartbeat does not list are removed,
        even if another consumer subscribes to them: RocketMQ demands equal subscriptions in a group.
        """
        changed = False
        listed = set()
        for subscription in subscriptions:
            topic = subscription.topic
            listed.add(topic)
            known = self.subscriptions.get(topic)
            if known is None:
                changed = True
            if known is None or known.sub_version < subscription.sub_version:
                self.subscriptions[topic] = subscription
        for topic in [topic for topic in self.subscriptions if topic not in listed]:
            del self.subscriptions[topic]
            changed = True
        return changed


class ConsumerManager:
    """The online consumer groups; a group is removed with its last channel.

    Args:
        on_change: called with a group whose consumers must be notified (NOTIFY_CONSUMER_IDS_CHANGED, 40).
        tell_broadcast_on_close: whether the other consumers of a broadcasting group are notified when a
            connection closes; False in 5.x.
    """

    def __init__(
        self, on_change: Callable[[ConsumerGroup], None], *, tell_broadcast_on_close: bool = True
    ) -> None:
        self._groups: dict[str, ConsumerGroup] = {}
        self._on_change = on_change
        self._tell_broadcast_on_close = tell_broadcast_on_close

    def find(self, group: str) -> ConsumerGroup | None:
        """Return the group if it is online."""
        return self._groups.get(group)

    def find_consumer(self, group: str, client_id: str) -> ClientChannel | None:
        """Return the consumer with that client id; the newest connection if there are several."""
        info = self._groups.get(group)
        channels = [] if info is None else list(info.channels.values())
        return next((channel for channel in reversed(channels) if channel.client_id == client_id), None)

    def subscribers_of(self, topic: str) -> list[str]:
        """Return the online groups that subscribe to a topic."""
        return [name for name, group in self._groups.items() if topic in group.subscriptions]

    def register(
        self, data: ConsumerData, channel: ClientChannel, *, notify: bool = True, without_sub: bool = False
    ) -> bool:
        """Register one consumer group of a heartbeat.

        Args:
            notify: False if the group's configuration turns notifications off.
            without_sub: True if the heartbeat omits the subscriptions (5.x); they stay as they are.

        Returns:
            True if the channel is new, or a topic was added or removed.

        Raises:
            RequestError: SYSTEM_ERROR (1), the group is new and there are ``MAX_GROUPS``.
        """
        info = self._groups.get(data.group_name)
        if info is None:
            check_room("consumer groups", len(self._groups), MAX_GROUPS)
            info = self._groups[data.group_name] = ConsumerGroup(
                data.group_name, data.consume_type, data.message_model, data.consume_from_where
            )
        info.consume_type = data.consume_type
        info.message_model = data.message_model
        info.consume_from_where = data.consume_from_where
        is_new = channel.connection not in info.channels
        info.channels[channel.connection] = channel
        changed = (not without_sub and info.merge(data.subscription_data_set)) or is_new
        if changed and notify:
            self._on_change(info)
        return changed

    def unregister(self, group: str, connection: Connection, *, notify: bool = True) -> None:
        """Remove one consumer (UNREGISTER_CLIENT, 35) and notify the others."""
        info = self._remove(group, connection)
        if info is not None and notify:
            self._on_change(info)

    def on_close(self, connection: Connection) -> None:
        """Remove a connection from every group and notify the remaining consumers at once."""
        for group in list(self._groups):
            info = self._remove(group, connection)
            if info is not None and (
                self._tell_broadcast_on_close or info.message_model is not MessageModel.BROADCASTING
            ):
                self._on_change(info)

    def expire(self, now: float) -> list[ClientChannel]:
        """Remove and return the channels without heartbeat for 120 s; notify no consumer.

        The caller closes their connections. The remaining consumers notice at their own next rebalance.
        """
        expired = [
            (info.name, channel)
            for info in self._groups.values()
            for channel in info.channels.values()
            if channel.is_expired(now)
        ]
        for group, channel in expired:
            self._remove(group, channel.connection)
        return [channel for _, channel in expired]

    def _remove(self, group: str, connection: Connection) -> ConsumerGroup | None:
        """Remove the connection; return the group if it had it and has other consumers left."""
        info = self._groups.get(group)
        if info is None or info.channels.pop(connection, None) is None:
            return None
        if not info.channels:
            del self._groups[group]
            return None
        return info
