"""Online consumer groups: their connections and subscriptions (docs/spec/broker.md B.3).

Source: RocketMQ 4.9.4 ``ConsumerManager`` and ``ConsumerGroupInfo``. A consumer is identified by its
connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from rewindmq.broker.clients.channel import ClientChannel
from rewindmq.broker.clients.memberships import Memberships
from rewindmq.broker.limits import MAX_SUBSCRIPTION_BYTES, MAX_SUBSCRIPTION_BYTES_PER_CONNECTION
from rewindmq.broker.shares import Shares
from rewindmq.protocol.body.group import GetConsumerListByGroupResponseBody
from rewindmq.protocol.body.heartbeat import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    MessageModel,
    SubscriptionData,
)
from rewindmq.protocol.codec.body import PreparedBody, encode_body
from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.remoting.connection import Connection

# About what a subscription and a tag take beside their characters; a tag has a hash, too.
_SUBSCRIPTION_BYTES: Final = 400
_TAG_BYTES: Final = 100


class Subscriptions(NamedTuple):
    """A group's subscriptions after one heartbeat.

    Attributes:
        by_topic: topic to subscription.
        size: about their memory in bytes.
    """

    by_topic: dict[str, SubscriptionData]
    size: int


@dataclass(slots=True)
class ConsumerGroup:
    """A group with at least one channel.

    Attributes:
        consume_type, message_model, consume_from_where: from the latest heartbeat of any consumer. If
            consumers disagree, each heartbeat changes the whole group.
        subscriptions: topic to subscription, merged over the consumers.
        channels: in order of registration.
        payer: the connection whose share has the subscriptions' bytes; it has set the latest.
        subscription_bytes: about the memory of the subscriptions.
    """

    name: str
    consume_type: ConsumeType
    message_model: MessageModel
    consume_from_where: ConsumeFromWhere
    subscriptions: dict[str, SubscriptionData] = field(default_factory=dict)
    channels: dict[Connection, ClientChannel] = field(default_factory=dict)
    payer: Connection | None = None
    subscription_bytes: int = 0
    _ids_body: PreparedBody | None = None

    def ids_body(self, serialize_type: SerializeType) -> PreparedBody:
        """Return the consumers' ids as the body of GET_CONSUMER_LIST_BY_GROUP (38).

        Encoded once for all consumers, which ask at the same time when the group has changed.
        """
        if self._ids_body is None:
            self._ids_body = PreparedBody(GetConsumerListByGroupResponseBody(self.client_ids()))
        encoded = self._ids_body.encoded
        if serialize_type not in encoded:
            encoded[serialize_type] = encode_body(self._ids_body.body, serialize_type)
        return self._ids_body

    def set_channel(self, channel: ClientChannel) -> bool:
        """Set the channel of a consumer's connection; return True if the connection is new."""
        known = self.channels.get(channel.connection)
        self.channels[channel.connection] = channel
        if known is None or known.client_id != channel.client_id:
            self._ids_body = None
        return known is None

    def drop_channel(self, connection: Connection) -> bool:
        """Remove the channel of a connection; return False if there is none."""
        self._ids_body = None
        return self.channels.pop(connection, None) is not None

    def client_ids(self) -> list[str]:
        """Return the client id of each connection.

        An id that two connections share is listed twice, as in every release of RocketMQ.
        """
        return [channel.client_id for channel in self.channels.values()]

    def growth(self, connection: Connection, size: int) -> int:
        """Return by how much a connection's share grows if it sets subscriptions of ``size`` bytes."""
        if size <= self.subscription_bytes:
            return 0
        return size - self.subscription_bytes if self.payer is connection else size


def _merge(
    known: Mapping[str, SubscriptionData], heartbeat: Iterable[SubscriptionData]
) -> dict[str, SubscriptionData]:
    """Return a group's subscriptions after one heartbeat.

    The newer version of a topic's subscription wins. Topics that the heartbeat does not list are removed,
    even if another consumer subscribes to them: RocketMQ demands equal subscriptions in a group.
    """
    listed: dict[str, SubscriptionData] = {}
    for subscription in heartbeat:
        topic = subscription.topic
        newest = listed.get(topic) or known.get(topic)
        listed[topic] = (
            subscription if newest is None or newest.sub_version < subscription.sub_version else newest
        )
    # Known topics keep their places.
    return {**{topic: listed[topic] for topic in known if topic in listed}, **listed}


def subscription_bytes(subscription: SubscriptionData) -> int:
    """Return about the memory that a subscription takes, in bytes."""
    tags = subscription.tags_set
    characters = len(subscription.topic) + len(subscription.sub_string) + len(subscription.expression_type)
    return (
        _SUBSCRIPTION_BYTES
        + characters
        + sum(map(len, tags))
        + _TAG_BYTES * (len(tags) + len(subscription.code_set))
    )


def _new_group(data: ConsumerData) -> ConsumerGroup:
    return ConsumerGroup(data.group_name, data.consume_type, data.message_model, data.consume_from_where)


class ConsumerManager:
    """The online consumer groups; a group is removed with its last channel.

    The broker counts a group's subscriptions for the connection that has set them. If that connection closes
    and others remain in the group, the next of them counts.

    Args:
        on_change: called with a group whose consumers must be notified (NOTIFY_CONSUMER_IDS_CHANGED, 40).
        tell_broadcast_on_close: whether the other consumers of a broadcasting group are notified when a
            connection closes; False in 5.x.

    Attributes:
        memberships: the groups of each connection.
        subscription_shares: the bytes of subscriptions for which each connection counts.
    """

    def __init__(
        self, on_change: Callable[[ConsumerGroup], None], *, tell_broadcast_on_close: bool = True
    ) -> None:
        self._groups: dict[str, ConsumerGroup] = {}
        self.memberships = Memberships("consumer groups", self._groups.keys())
        self.subscription_shares = Shares(
            "bytes of subscriptions", MAX_SUBSCRIPTION_BYTES_PER_CONNECTION, MAX_SUBSCRIPTION_BYTES
        )
        self._on_change = on_change
        self._tell_broadcast_on_close = tell_broadcast_on_close

    def __len__(self) -> int:
        return len(self._groups)

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

    def check(
        self, connection: Connection, consumers: Sequence[ConsumerData], *, without_sub: bool = False
    ) -> list[Subscriptions | None]:
        """Refuse a heartbeat whose groups or subscriptions do not fit.

        Args:
            without_sub: True if the heartbeat omits the subscriptions (5.x); they stay as they are.

        Returns:
            What ``register`` has to set for each group: its subscriptions, None if they stay.

        Raises:
            RequestError: SYSTEM_ERROR (1), see ``Memberships.check``; or the subscriptions set by the
                connection, or all subscriptions, would be too large.
        """
        self.memberships.check(connection, [data.group_name for data in consumers])
        if without_sub:
            return [None] * len(consumers)
        growth = 0
        found: list[Subscriptions | None] = []
        # A heartbeat may list a group twice: the second time continues from the first.
        known: dict[str, dict[str, SubscriptionData]] = {}
        for data in consumers:
            name = data.group_name
            info = self._groups.get(name) or _new_group(data)
            known[name] = by_topic = _merge(known.get(name, info.subscriptions), data.subscription_data_set)
            size = sum(map(subscription_bytes, by_topic.values()))
            growth += info.growth(connection, size)
            found.append(Subscriptions(by_topic, size))
        if growth:
            self.subscription_shares.check(connection, growth)
        return found

    def register(
        self,
        data: ConsumerData,
        channel: ClientChannel,
        subscriptions: Subscriptions | None,
        *,
        notify: bool = True,
    ) -> bool:
        """Register one consumer group of a heartbeat.

        Args:
            subscriptions: as ``check`` has returned them.
            notify: False if the group's configuration turns notifications off.

        Returns:
            True if the channel is new, or a topic was added or removed.
        """
        connection = channel.connection
        info = self._groups.get(data.group_name)
        if info is None:
            info = self._groups[data.group_name] = _new_group(data)
        changed = subscriptions is not None and self._subscribe(info, connection, subscriptions)
        info.consume_type = data.consume_type
        info.message_model = data.message_model
        info.consume_from_where = data.consume_from_where
        changed = info.set_channel(channel) or changed
        self.memberships.add(connection, data.group_name)
        if changed and notify:
            self._on_change(info)
        return changed

    def _subscribe(self, info: ConsumerGroup, connection: Connection, subscriptions: Subscriptions) -> bool:
        """Set a group's subscriptions; return True if a topic was added or removed."""
        by_topic, size = subscriptions
        payer = info.payer if info.payer is not None and size <= info.subscription_bytes else connection
        if info.payer is not None:
            self.subscription_shares.remove(info.payer, info.subscription_bytes)
        self.subscription_shares.add(payer, size)
        changed = by_topic.keys() != info.subscriptions.keys()
        info.subscriptions, info.subscription_bytes, info.payer = by_topic, size, payer
        return changed

    def unregister(self, group: str, connection: Connection, *, notify: bool = True) -> None:
        """Remove one consumer (UNREGISTER_CLIENT, 35) and notify the others."""
        info = self._remove(group, connection)
        if info is not None and notify:
            self._on_change(info)

    def on_close(self, connection: Connection) -> None:
        """Remove a connection from every group and notify the remaining consumers at once."""
        for group in self.memberships.of(connection):
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
        if info is None or not info.drop_channel(connection):
            return None
        self.memberships.remove(connection, group)
        if info.payer is connection:
            self.subscription_shares.remove(connection, info.subscription_bytes)
            info.payer = next(iter(info.channels), None)
            if info.payer is not None:
                self.subscription_shares.add(info.payer, info.subscription_bytes)
        if not info.channels:
            del self._groups[group]
            return None
        return info
