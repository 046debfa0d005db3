"""The columns of each view: name, Spark type and meaning.

Names are RocketMQ's, in its spelling.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa


class Column(NamedTuple):
    """One column.

    Attributes:
        type: Spark type, in DDL.
        meaning: text for the docs.
        is_default: whether the view has the column when the caller gives no schema.
    """

    type: str
    meaning: str
    is_default: bool = True


MESSAGES: Final = MappingProxyType(
    {
        "store": Column(
            "string", "the store's name: the last part of its path, or the parts that differ between paths"
        ),
        "segment": Column("bigint", "position of the segment's first byte in the commit log"),
        "physicalOffset": Column("bigint", "position in the commit log"),
        "storeSize": Column("int", "bytes of the whole record"),
        "topic": Column("string", "as stored: SCHEDULE_TOPIC_XXXX for a delayed message"),
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
        "flag": Column("int", "the application's own flag"),
        "sysFlag": Column("int", ""),
        "transactionState": Column("string", "none, prepared, commit or rollback, from sysFlag"),
        "preparedTransactionOffset": Column("bigint", "position of the half message of a commit, else 0"),
        "bodyCRC": Column("int", "CRC of the body, as the record states it"),
        "crcOk": Column("boolean", "whether the stored body has that CRC"),
        "properties": Column("map<string,string>", ""),
        "body": Column("binary", "as stored; decompressed if the option decompress is true"),
        # Present only if the caller's schema names them.
        "keysText": Column("string", "KEYS, not split: the key of a compaction", is_default=False),
        "bodySize": Column("int", "bytes of the stored body", is_default=False),
        "tagsCode": Column("bigint", "tagsCode of the record's ConsumeQueue entry", is_default=False),
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
        "queueOffset": Column("bigint", "number of the ConsumeQueue entry"),
        "physicalOffset": Column("bigint", "where the record begins in the commit log"),
        "size": Column("int", "bytes of the record"),
        "tagsCode": Column("bigint", "hash of the tag, or a delayed message's delivery time"),
    }
)

INDEX: Final = MappingProxyType(
    {
        "store": Column("string", "the store's name"),
        "file": Column("string", "name of the index file, its creation time"),
        "entry": Column("int", "number of the entry in its file, from 1"),
        "slot": Column("int", "hash slot: keyHash modulo the number of slots"),
        "keyHash": Column("int", "hash of topic#key, never negative"),
        "physicalOffset": Column("bigint", "where the message's record begins in the commit log"),
        "timeDiff": Column("int", "whole seconds since the file's first entry"),
        "storeTimestamp": Column("timestamp", "computed from timeDiff: up to a second early"),
        "previous": Column("int", "number of the previous entry of the slot; 0 for none"),
    }
)

OFFSETS: Final = MappingProxyType(
    {
        "store": Column("string", "the store's name"),
        "group": Column("string", ""),
        "topic": Column("string", ""),
        "queueId": Column("int", ""),
        "offset": Column("bigint", "the next message to consume, from consumerOffset.json"),
        "minOffset": Column("bigint", "offset of the first retained message; null without a consume queue"),
        "maxOffset": Column("bigint", "one past the last message's offset; null without a consume queue"),
        "lag": Column("bigint", "maxOffset minus offset"),
    }
)

DAMAGE: Final = MappingProxyType(
    {
        "store": Column("string", "the store's name"),
        "segment": Column("bigint", "position of the segment's first byte in the commit log"),
        "kind": Column("string", "torn tail, bad CRC or hole"),
        "start": Column("bigint", "first position of the damaged place in the commit log"),
        "end": Column("bigint", "first position after the damaged place"),
        "detail": Column("string", "one sentence"),
    }
)

OPEN_TIMERS: Final = MappingProxyType(
    {
        "store": Column("string", "the store's name"),
        "topic": Column("string", "where the message will be delivered: REAL_TOPIC"),
        "queueId": Column("int", "its queue there: REAL_QID"),
        "uniqueKey": Column("string", "UNIQ_KEY: the message id that clients print"),
        "keys": Column("array<string>", "KEYS, split on spaces"),
        "tag": Column("string", "TAGS"),
        "bornTimestamp": Column("timestamp", "the producer's clock"),
        "storeTimestamp": Column("timestamp", "the broker's clock, when it stored the message last"),
        "dueTimestamp": Column("timestamp", "TIMER_OUT_MS: begin of the second in which it is due"),
        "rolls": Column("int", "how often the message was stored again on its way: TIMER_ROLL_TIMES"),
        "recalled": Column("boolean", "whether it will not be delivered, as a deletion waits with it"),
        "physicalOffset": Column("bigint", "position in the commit log"),
        "storeSize": Column("int", "bytes of the whole record"),
        # Present only if the caller's schema names them.
        "timerQueueOffset": Column("bigint", "offset in rmq_sys_wheel_timer", is_default=False),
        "dueTimestampMs": Column("bigint", "dueTimestamp as ms", is_default=False),
    }
)

IN_FLIGHT: Final = MappingProxyType(
    {
        "store": Column("string", "the store's name"),
        "group": Column("string", "the group that popped the message"),
        "topic": Column("string", "as stored: %RETRY%group_topic for a message that was revived"),
        "queueId": Column("int", ""),
        "queueOffset": Column("bigint", "position in the queue"),
        "popTimestamp": Column("timestamp", "when the group popped it"),
        "visibleTimestamp": Column("timestamp", "when its invisible time is over"),
        "reviveQueueId": Column("int", "queue of the revive topic: reviveQid of the handle"),
        "startOffset": Column("bigint", "queue offset at which the POP began: startOffset of the handle"),
        # Present only if the caller's schema names them.
        "popTimestampMs": Column("bigint", "popTimestamp as ms: popTime of the handle", is_default=False),
        "visibleTimestampMs": Column("bigint", "visibleTimestamp as ms", is_default=False),
    }
)

VIEWS: Final[Mapping[str, Mapping[str, Column]]] = MappingProxyType(
    {
        "messages": MESSAGES,
        "consumequeue": CONSUME_QUEUE,
        "index": INDEX,
        "offsets": OFFSETS,
        "damage": DAMAGE,
        "open_timers": OPEN_TIMERS,
        "in_flight": IN_FLIGHT,
    }
)


def ddl(columns: Mapping[str, Column]) -> str:
    """Return the default columns as a Spark schema."""
    return ", ".join(f"{name} {column.type}" for name, column in columns.items() if column.is_default)


def arrow_schema(ddl: str) -> pa.Schema:
    """Return a schema of Spark, with the types of the views, as one of Arrow."""
    import pyarrow as pa

    types = {
        "string": pa.string(), "int": pa.int32(), "bigint": pa.int64(), "boolean": pa.bool_(),
        "binary": pa.binary(), "timestamp": pa.timestamp("us", tz="UTC"),
        "array<bigint>": pa.list_(pa.int64()), "array<string>": pa.list_(pa.string()),
        "map<string,string>": pa.map_(pa.string(), pa.string()),
    }  # fmt: skip
    fields = (column.split() for column in ddl.split(", "))
    return pa.schema([(name, types[kind]) for name, kind in fields])
