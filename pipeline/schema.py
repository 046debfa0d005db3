"""The columns of each view, once: their types in Spark, and what they mean.

Names are RocketMQ's, in its own spelling.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple


class Column(NamedTuple):
    """One column.

    Attributes:
        type: as Spark's DDL writes it.
        meaning: for the docs.
        is_default: part of the view when no schema is given.
    """

    type: str
    meaning: str
    is_default: bool = True


MESSAGES: Final = MappingProxyType(
    {
        "store": Column(
            "string", "the store's name: the last part of its path; of several, what tells their paths apart"
        ),
        "segment": Column("bigint", "base of the commit log segment"),
        "physicalOffset": Column("bigint", "position in the commit log"),
        "storeSize": Column("int", "bytes of the whole record"),
        "topic": Column("string", "as stored: a delayed message's is SCHEDULE_TOPIC_XXXX"),
        "queueId": Column("int", ""),
        "queueOffset": Column("bigint", "position in the queue; 0 and meaningless for prepared and rollback"),
        "keys": Column("array<string>", "KEYS, split on spaces"),
        "tag": Column("string", "TAGS"),
        "uniqueKey": Column("string", "UNIQ_KEY: the message id that clients print"),
        "bornTimestamp": Column("timestamp", "the producer's clock"),
        "storeTimestamp": Column("timestamp", "the broker's clock"),
        "bornHost": Column("string", "host:port of the producer"),
        "storeHost": Column("string", "host:port of the broker"),
        "reconsumeTimes": Column("int", ""),
        "flag": Column("int", "the application's own"),
        "sysFlag": Column("int", ""),
        "transactionState": Column("string", "none, prepared, commit or rollback, as sysFlag says"),
        "preparedTransactionOffset": Column("bigint", "position of the half message of a commit, else 0"),
        "bodyCRC": Column("int", "as the record states it"),
        "crcOk": Column("boolean", "whether the stored body has that CRC"),
        "properties": Column("map<string,string>", ""),
        "body": Column("binary", "as stored; decompressed with option decompress=true"),
        # Only by name, in a schema of the caller's.
        "keysText": Column("string", "KEYS whole: the key of a compaction", is_default=False),
        "bodySize": Column("int", "bytes of the stored body", is_default=False),
        "tagsCode": Column("bigint", "what a consume queue unit of this record holds", is_default=False),
        "delay": Column("string", "DELAY, the level of a delayed message", is_default=False),
        "realTopic": Column("string", "REAL_TOPIC of a delayed or half message", is_default=False),
        "realQueueId": Column("string", "REAL_QID of a delayed or half message", is_default=False),
        "storeTimestampMs": Column("bigint", "storeTimestamp as ms", is_default=False),
        "bornTimestampMs": Column("bigint", "bornTimestamp as ms", is_default=False),
        "version": Column("int", "1, or 2 for topics above 127 bytes (5.x)", is_default=False),
    }
)


CONSUME_QUEUE: Final = MappingProxyType(
    {
        "store": Column("string", "the store's name"),
        "topic": Column("string", ""),
        "queueId": Column("int", ""),
        "queueOffset": Column("bigint", "number of the unit"),
        "physicalOffset": Column("bigint", "where the record begins in the commit log"),
        "size": Column("int", "bytes of the record"),
        "tagsCode": Column("bigint", "hash of the tag, or a delayed message's delivery time"),
    }
)

INDEX: Final = MappingProxyType(
    {
        "store": Column("string", "the store's name"),
        "file": Column("string", "name of the index file: its creation time"),
        "entry": Column("int", "number of the entry in its file, from 1"),
        "slot": Column("int", "hash slot: keyHash modulo the number of slots"),
        "keyHash": Column("int", "of topic#key, never negative"),
        "physicalOffset": Column("bigint", "where the message's record begins in the commit log"),
        "timeDiff": Column("int", "whole seconds since the file's first entry"),
        "storeTimestamp": Column("timestamp", "as timeDiff tells it: up to a second early"),
        "previous": Column("int", "the entry before this one in its slot, 0 for none"),
    }
)

OFFSETS: Final = MappingProxyType(
    {
        "store": Column("string", "the store's name"),
        "group": Column("string", ""),
        "topic": Column("string", ""),
        "queueId": Column("int", ""),
        "offset": Column("bigint", "the next message to consume, as consumerOffset.json has it"),
        "minOffset": Column("bigint", "of the messages still in the log; null without a consume queue"),
        "maxOffset": Column("bigint", "behind the queue's last message; null without a consume queue"),
        "lag": Column("bigint", "maxOffset less offset"),
    }
)

DAMAGE: Final = MappingProxyType(
    {
        "store": Column("string", "the store's name"),
        "segment": Column("bigint", "base of the commit log segment"),
        "kind": Column("string", "torn tail, bad CRC or hole"),
        "start": Column("bigint", "position in the commit log"),
        "end": Column("bigint", "position behind the damaged place"),
        "detail": Column("string", "one sentence"),
    }
)

VIEWS: Final[Mapping[str, Mapping[str, Column]]] = MappingProxyType(
    {
        "messages": MESSAGES,
        "consumequeue": CONSUME_QUEUE,
        "index": INDEX,
        "offsets": OFFSETS,
        "damage": DAMAGE,
    }
)


def ddl(columns: Mapping[str, Column]) -> str:
    """The default columns as a Spark schema."""
    return ", ".join(f"{name} {column.type}" for name, column in columns.items() if column.is_default)
