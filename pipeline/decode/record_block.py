"""Decodes all records of a buffer at once with numpy.

Tests compare it record by record with ``protocol.message.record.decode_record``, which all other code uses.
"""

from __future__ import annotations

import struct
from functools import cached_property
from typing import Any, Final
from zlib import crc32

import numpy as np
import numpy.typing as npt

from rewindmq.protocol.message.record import MAGIC_BLANK, MAGIC_V1, MAGIC_V2, OVERHEAD_V4
from rewindmq.protocol.message.sysflag import MessageSysFlag

Int64s = npt.NDArray[np.int64]
Structs = npt.NDArray[np.void]
Bools = npt.NDArray[np.bool_]

# ``protocol.message.record._HEAD``, ``_INT64`` and ``_TAIL`` as numpy types.
HEAD: Final = np.dtype(
    [
        ("total_size", ">i4"),
        ("magic", ">u4"),
        ("body_crc", ">i4"),
        ("queue_id", ">i4"),
        ("flag", ">i4"),
        ("queue_offset", ">i8"),
        ("physical_offset", ">i8"),
        ("sys_flag", ">i4"),
        ("born_timestamp", ">i8"),
    ]
)
_STORE_TIMESTAMP: Final = np.dtype([("store_timestamp", ">i8")])
TAIL: Final = np.dtype(
    [("reconsume_times", ">i4"), ("prepared_transaction_offset", ">i8"), ("body_length", ">i4")]
)
_SHORT: Final = np.dtype(">i2")
_SHORT_LIMIT: Final = 1 << 15
_START: Final = struct.Struct(">iI")
_HOST_V4: Final = 8
_V6_EXTRA: Final = 12


def walk(data: bytes, position: int, stop: int) -> tuple[list[int], int]:
    """Return the starts of the records from ``position`` on, found by their sizes alone.

    Args:
        stop: records that begin here or later are not listed.

    Returns:
        The starts, and the position after the last record. At that position the record is incomplete in
        ``data``, there is no record, or the walk reached ``stop``.
    """
    positions: list[int] = []
    append = positions.append
    unpack = _START.unpack_from
    last_start = min(stop - 1, len(data) - OVERHEAD_V4)
    end = len(data)
    while position <= last_start:
        size, magic = unpack(data, position)
        if magic != MAGIC_V1 and magic != MAGIC_V2:
            break
        if size < OVERHEAD_V4 or position + size > end:
            break
        append(position)
        position += size
    return positions, position


def is_blank_at(data: bytes, position: int) -> bool:
    """Whether a blank record at ``position`` marks the rest of the segment as unused."""
    if position + _START.size > len(data):
        return False
    _, magic = _START.unpack_from(data, position)
    return bool(magic == MAGIC_BLANK)


class RecordBlock:
    """Complete records within ``data``, in the order of the log.

    Attributes:
        data: bytes of one segment; bytes between records are ignored.
        base: log position of the first byte of ``data``.
        at: start of each record in ``data``, shape (n,).
    """

    def __init__(self, data: bytes, base: int, at: Int64s) -> None:
        self.data = data
        self.base = base
        self.at = at
        self._octets = np.frombuffer(data, np.uint8)

    def __len__(self) -> int:
        return len(self.at)

    def _window(self, at: Int64s, layout: np.dtype[Any]) -> Structs:
        if not len(at):
            return np.empty(0, layout)
        rows = np.lib.stride_tricks.sliding_window_view(self._octets, layout.itemsize)[at]
        return rows.reshape(-1).view(layout)

    @cached_property
    def head(self) -> Structs:
        """The fields before the born host, shape (n,)."""
        return self._window(self.at, HEAD)

    @cached_property
    def sys_flag(self) -> npt.NDArray[np.int32]:
        """sysFlag in the machine's byte order, shape (n,)."""
        return self.head["sys_flag"].astype(np.int32)

    @cached_property
    def born_host_at(self) -> Int64s:
        """Start of the producer's address in ``data``."""
        return self.at + HEAD.itemsize

    @cached_property
    def born_host_end(self) -> Int64s:
        """End of the producer's address; the store timestamp follows."""
        return self.born_host_at + self._host_bytes(MessageSysFlag.BORNHOST_V6)

    def _host_bytes(self, flag: MessageSysFlag) -> Int64s:
        return np.where(self.sys_flag & int(flag), _HOST_V4 + _V6_EXTRA, _HOST_V4).astype(np.int64)

    @cached_property
    def store_timestamp(self) -> Int64s:
        """Store timestamps by the broker's clock, ms."""
        rows = self._window(self.born_host_end, _STORE_TIMESTAMP)
        return rows["store_timestamp"].astype(np.int64)

    @cached_property
    def store_host_at(self) -> Int64s:
        """Start of the broker's address in ``data``."""
        return self.born_host_end + 8

    @cached_property
    def store_host_end(self) -> Int64s:
        """End of the broker's address."""
        return self.store_host_at + self._host_bytes(MessageSysFlag.STOREHOST_V6)

    @cached_property
    def tail(self) -> Structs:
        """The fields between the store host and the body, shape (n,)."""
        return self._window(self.store_host_end, TAIL)

    @cached_property
    def body_at(self) -> Int64s:
        """Start of the stored body in ``data``."""
        return self.store_host_end + TAIL.itemsize

    @cached_property
    def body_end(self) -> Int64s:
        """End of the stored body; the topic's length follows."""
        return self.body_at + self.tail["body_length"].astype(np.int64)

    @cached_property
    def topic_at(self) -> Int64s:
        """Start of the topic in ``data``."""
        return self.body_end + np.where(self.head["magic"] == MAGIC_V2, 2, 1)

    @cached_property
    def topic_end(self) -> Int64s:
        """End of the topic; the properties' length follows."""
        # The byte before the topic is its length, or the low byte of its length (V2).
        size = self._octets[self.topic_at - 1].astype(np.int64)
        high = self._octets[self.topic_at - 2].astype(np.int64) << 8
        return self.topic_at + size + np.where(self.head["magic"] == MAGIC_V2, high, 0)

    @cached_property
    def properties_at(self) -> Int64s:
        """Start of the properties text in ``data``."""
        return self.topic_end + 2

    @cached_property
    def end(self) -> Int64s:
        """End of the record, and of its properties text."""
        return self.at + self.head["total_size"].astype(np.int64)

    @cached_property
    def intact(self) -> Bools:
        """Whether each record states its own log position and lengths that add up; CRCs are not checked."""
        good: Bools = self.head["physical_offset"] == self.base + self.at
        # A length is used only if the lengths before it are valid; otherwise it would be read outside the
        # buffer.
        good = good & (self.body_at <= self.end)
        body = self.tail_lengths(good)
        topic_at = self.body_at + body + np.where(self.head["magic"] == MAGIC_V2, 2, 1)
        good = good & (body >= 0) & (topic_at + 2 <= self.end)
        topic_at = np.where(good, topic_at, 2)
        size = self._octets[topic_at - 1].astype(np.int64)
        high = self._octets[topic_at - 2].astype(np.int64) << 8
        size = size + np.where(self.head["magic"] == MAGIC_V2, high, 0)
        topic_end = topic_at + size
        # The two bytes of the length are a signed number.
        good = good & (size < _SHORT_LIMIT) & (topic_end + 2 <= self.end)
        topic_end = np.where(good, topic_end, 0)
        rows = self._window(topic_end, np.dtype([("length", _SHORT)]))
        length = rows["length"].astype(np.int64)
        kept: Bools = good & (length >= 0) & (topic_end + 2 + length == self.end)
        return kept

    def tail_lengths(self, good: Bools) -> Int64s:
        """Return the body lengths of the records in ``good``, 0 for the others."""
        at = np.where(good, self.store_host_end, 0)
        return np.where(good, self._window(at, TAIL)["body_length"].astype(np.int64), 0)

    @cached_property
    def crc_ok(self) -> Bools:
        """Whether each stored body matches the CRC that its record states."""
        view = memoryview(self.data)
        sums = [
            crc32(view[start:end]) & 0x7FFFFFFF
            for start, end in zip(self.body_at.tolist(), self.body_end.tolist(), strict=True)
        ]
        same: Bools = np.asarray(sums, np.int64) == self.head["body_crc"]
        return same

    def select(self, chosen: Int64s | Bools | slice) -> RecordBlock:
        """Return a block with some of the records, over the same bytes."""
        return RecordBlock(self.data, self.base, self.at[chosen])
