"""How full the servers' tables are during a measurement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rewindmq.broker.limits import MAX_GROUPS, MAX_QUEUE_LOCKS, MAX_TOPICS
from rewindmq.broker.store.tables.consumer_offset import MAX_OFFSETS
from rewindmq.namesrv.kv_config import MAX_ENTRIES
from rewindmq.namesrv.route_info import MAX_BROKERS
from rewindmq.namesrv.route_info import MAX_TOPICS as MAX_ROUTED_TOPICS
from rewindmq.protocol.limits import MAX_MESSAGE_BODY_BYTES, MAX_QUEUE_NUMS, MAX_RESPONSE_BODY_BYTES
from rewindmq.protocol.remoting.dispatch import MAX_REQUESTS_IN_PROGRESS


@dataclass(frozen=True, slots=True)
class Sizes:
    """Numbers of entries and bytes.

    Attributes:
        topics, groups, offsets, locks: entries of the broker's tables.
        queues: queues of one topic.
        stored: messages that are stored before the measurement, with one key.
        suspended: suspended pulls of one connection.
        clients: connections of one group.
        message_bytes: the largest message.
        body_bytes: the largest structured body.
        routed_topics, brokers, pairs: entries of the name server's tables.
    """

    topics: int
    groups: int
    offsets: int
    locks: int
    queues: int
    stored: int
    suspended: int
    clients: int
    message_bytes: int
    body_bytes: int
    routed_topics: int
    brokers: int
    pairs: int


# The documented limits. There is no limit of stored messages and of connections: 50,000 and 1,000.
FULL: Final = Sizes(
    topics=MAX_TOPICS,
    groups=MAX_GROUPS,
    offsets=MAX_OFFSETS,
    locks=MAX_QUEUE_LOCKS,
    queues=MAX_QUEUE_NUMS,
    stored=50_000,
    suspended=MAX_REQUESTS_IN_PROGRESS,
    clients=1_000,
    message_bytes=MAX_MESSAGE_BODY_BYTES,
    body_bytes=MAX_RESPONSE_BODY_BYTES,
    routed_topics=MAX_ROUTED_TOPICS,
    brokers=MAX_BROKERS,
    pairs=MAX_ENTRIES,
)


def reduced(divisor: int) -> Sizes:
    """Return the limits divided by a number, at least 10 of each."""
    values = {name: max(10, getattr(FULL, name) // divisor) for name in FULL.__dataclass_fields__}
    return Sizes(**values)
