"""Columns of the message view; each is built only when requested."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rewindmq.broker.store.consume_queue.tags_code import SCHEDULE_TOPIC, DelayLevels
from rewindmq.pipeline.decode.gather import gather, texts
from rewindmq.pipeline.decode.property_columns import PropertyColumns, split_keys
from rewindmq.pipeline.decode.record_block import Int64s, RecordBlock
from rewindmq.protocol.message.message import format_host
from rewindmq.protocol.message.properties import DELAY, KEYS, REAL_QID, REAL_TOPIC, TAGS, UNIQ_KEY
from rewindmq.protocol.message.record import MAGIC_V2
from rewindmq.protocol.message.sysflag import TRANSACTION_MASK
from rewindmq.protocol.text import java_hash

_TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
_TRANSACTION_SHIFT: Final = 2
# The years 1 to 9999 without two days at each end: Python has these moments in every time zone.
FIRST_MOMENT_MS: Final = -62_135_424_000_000
LAST_MOMENT_MS: Final = 253_402_127_999_999
_TRANSACTION_STATES: Final = pa.array(["none", "prepared", "commit", "rollback"])


class MessageColumns:
    """One block of records as Arrow columns, named as in ``pipeline.schema.MESSAGES``."""

    def __init__(
        self,
        block: RecordBlock,
        store: str,
        segment: int,
        levels: DelayLevels,
        *,
        bodies: pa.Array | None = None,
    ) -> None:
        """
        Args:
            levels: the broker's delay levels; delivery times follow from them.
            bodies: the body column, if it differs from the stored bodies.
        """
        self.block = block
        self.store = store
        self.segment = segment
        self.levels = levels
        self.bodies = bodies

    def batch(self, names: Sequence[str]) -> pa.RecordBatch:
        """Return these columns in this order."""
        return pa.RecordBatch.from_arrays([self.column(name) for name in names], list(names))

    def column(self, name: str) -> pa.Array:
        """Return the column of this name."""
        return _MAKERS[name](self)

    @cached_property
    def properties(self) -> PropertyColumns:
        """The properties texts, parsed once for all columns that need them."""
        block = self.block
        return PropertyColumns(block.data, block.properties_at, block.end)

    def repeated(self, value: Any, kind: pa.DataType) -> pa.Array:
        """Return a column with the same value for each record."""
        return pa.repeat(pa.scalar(value, kind), len(self.block))

    def gathered(self, at: Int64s, end: Int64s) -> pa.Array:
        """Return a text column cut out of the records. Decodes each distinct text once, as there are few."""
        return _decoded(gather(self.block.data, at, end), texts)

    def hosts(self, at: Int64s, end: Int64s) -> pa.Array:
        """Return addresses as ``host:port``."""
        return _decoded(gather(self.block.data, at, end), _host_names)


def _decoded(pieces: pa.Array, decode: Callable[[pa.Array], pa.Array]) -> pa.Array:
    distinct = pieces.dictionary_encode()
    return decode(distinct.dictionary).take(distinct.indices)


def _host_names(addresses: pa.Array) -> pa.Array:
    return pa.array([format_host(address) for address in addresses.to_pylist()], pa.string())


def _body(columns: MessageColumns) -> pa.Array:
    block = columns.block
    if columns.bodies is not None:
        return columns.bodies
    return gather(block.data, block.body_at, block.body_end)


def _transaction_state(columns: MessageColumns) -> pa.Array:
    states = (columns.block.sys_flag & TRANSACTION_MASK) >> _TRANSACTION_SHIFT
    return _TRANSACTION_STATES.take(pa.array(states))


def timestamps(values: Int64s) -> pa.Array:
    """Return times in ms as Spark's timestamps."""
    # Python and Spark have no time after the year 9999: a later time becomes the last one that they have.
    return pa.array(np.clip(values, FIRST_MOMENT_MS, LAST_MOMENT_MS) * 1000).cast(_TIMESTAMP)


def _tags_code(columns: MessageColumns) -> pa.Array:
    """Return the tagsCode of ConsumeQueue entries: the tag's hash, or a delayed message's delivery time."""
    tags = columns.column("tag").dictionary_encode()
    hashes = pa.array([java_hash(tag) for tag in tags.dictionary.to_pylist()], pa.int64())
    codes = hashes.take(tags.indices).fill_null(0)
    delayed = np.flatnonzero(pc.equal(columns.column("topic"), SCHEDULE_TOPIC).to_numpy(zero_copy_only=False))
    if not len(delayed):
        return codes
    values = codes.to_numpy().copy()
    levels = columns.column("delay").take(pa.array(delayed)).to_pylist()
    for record, level in zip(delayed.tolist(), levels, strict=True):
        if level is not None and level.isascii() and level.isdigit() and int(level) > 0:
            stored = int(columns.block.store_timestamp[record])
            values[record] = columns.levels.delivery_time(int(level), stored)
    return pa.array(values)


def _by_property(name: str) -> Callable[[MessageColumns], pa.Array]:
    return lambda columns: columns.properties.column(name)


def _by_head(field: str, kind: npt.DTypeLike) -> Callable[[MessageColumns], pa.Array]:
    return lambda columns: pa.array(columns.block.head[field].astype(kind))


def _by_tail(field: str, kind: npt.DTypeLike) -> Callable[[MessageColumns], pa.Array]:
    return lambda columns: pa.array(columns.block.tail[field].astype(kind))


_MAKERS: Final = MappingProxyType[str, Callable[[MessageColumns], pa.Array]](
    {
        "store": lambda columns: columns.repeated(columns.store, pa.string()),
        "segment": lambda columns: columns.repeated(columns.segment, pa.int64()),
        "physicalOffset": _by_head("physical_offset", np.int64),
        "storeSize": _by_head("total_size", np.int32),
        "topic": lambda columns: columns.gathered(columns.block.topic_at, columns.block.topic_end),
        "queueId": _by_head("queue_id", np.int32),
        "queueOffset": _by_head("queue_offset", np.int64),
        "keys": lambda columns: split_keys(columns.column("keysText")),
        "tag": _by_property(TAGS),
        "uniqueKey": _by_property(UNIQ_KEY),
        "bornTimestamp": lambda columns: timestamps(columns.block.head["born_timestamp"].astype(np.int64)),
        "storeTimestamp": lambda columns: timestamps(columns.block.store_timestamp),
        "bornHost": lambda columns: columns.hosts(columns.block.born_host_at, columns.block.born_host_end),
        "storeHost": lambda columns: columns.hosts(columns.block.store_host_at, columns.block.store_host_end),
        "reconsumeTimes": _by_tail("reconsume_times", np.int32),
        "flag": _by_head("flag", np.int32),
        "sysFlag": lambda columns: pa.array(columns.block.sys_flag),
        "transactionState": _transaction_state,
        "preparedTransactionOffset": _by_tail("prepared_transaction_offset", np.int64),
        "bodyCRC": _by_head("body_crc", np.int32),
        "crcOk": lambda columns: pa.array(columns.block.crc_ok),
        "properties": lambda columns: columns.properties.maps,
        "body": _body,
        "keysText": _by_property(KEYS),
        "bodySize": _by_tail("body_length", np.int32),
        "tagsCode": _tags_code,
        "delay": _by_property(DELAY),
        "realTopic": _by_property(REAL_TOPIC),
        "realQueueId": _by_property(REAL_QID),
        "storeTimestampMs": lambda columns: pa.array(columns.block.store_timestamp),
        "bornTimestampMs": _by_head("born_timestamp", np.int64),
        "version": lambda columns: pa.array(
            np.where(columns.block.head["magic"] == MAGIC_V2, 2, 1).astype(np.int32)
        ),
    }
)
