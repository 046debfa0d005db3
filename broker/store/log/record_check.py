"""Checks whether the bytes at a log position are an intact record; they may be torn, stale or no record."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from typing import Final, NamedTuple
from zlib import crc32

from rewindmq.broker.store.files.mapped_file import MappedFile
from rewindmq.protocol.limits import MAX_PROPERTIES_BYTES
from rewindmq.protocol.message.record import BLANK, BLANK_BYTES, FIXED_V4, MAGIC_BLANK, MAGIC_V1, MAGIC_V2
from rewindmq.protocol.message.sysflag import MessageSysFlag


class RecordHead(NamedTuple):
    """Layout of the fields before the body; it depends on the address sizes of the two hosts."""

    layout: struct.Struct
    body_at: int


HOST_FLAGS: Final = int(MessageSysFlag.BORNHOST_V6 | MessageSysFlag.STOREHOST_V6)
_BORN_V6: Final = int(MessageSysFlag.BORNHOST_V6)
_STORE_V6: Final = int(MessageSysFlag.STOREHOST_V6)


def _head(born_bytes: int, store_bytes: int) -> RecordHead:
    layout = struct.Struct(f">iIiiiqqiq{born_bytes}sq{store_bytes}siqi")
    return RecordHead(layout, layout.size)


# By the host bits of sysFlag.
RECORD_HEADS: Final = {
    0: RecordHead(FIXED_V4, FIXED_V4.size),
    _BORN_V6: _head(20, 8),
    _STORE_V6: _head(8, 20),
    HOST_FLAGS: _head(20, 20),
}

# The same layouts, reduced to size, magic, CRC, queue id, queue offset, log position, sysFlag,
# store timestamp and body length.
_CHECKED_FIELDS: Final = {
    flags: struct.Struct(f">iIii4xqqi{28 if flags & _BORN_V6 else 16}xq{32 if flags & _STORE_V6 else 20}xi")
    for flags in RECORD_HEADS
}
_INT16: Final = struct.Struct(">h")
# The byte of sysFlag that holds the host bits.
_HOST_FLAGS_AT: Final = 39
# The part of a file that a disk writes as a whole.
_SECTOR_BYTES: Final = 512


class StoredRecord(NamedTuple):
    """The fields of a record that consume queues and the index need."""

    physical_offset: int
    size: int
    topic: bytes
    queue_id: int
    queue_offset: int
    sys_flag: int
    store_timestamp: int
    properties_bytes: int

    def properties(self, mapping: mmap.mmap | bytes, base: int) -> bytes:
        """Return the properties text, given the mapping of the segment and the segment's base."""
        end = self.physical_offset - base + self.size
        return mapping[end - self.properties_bytes : end]


def check_record(
    mapping: mmap.mmap | bytes, position: int, end: int, physical_offset: int, check_crc: bool
) -> StoredRecord | None:
    """Return the record at ``position`` of a segment, or None if it is not intact.

    A record is intact if its magic is known, it holds its own log position, its lengths add up and end
    before ``end``, and its body matches the CRC if ``check_crc`` is set. V2 records (5.x, topics above
    127 bytes) count.
    """
    if not 0 <= position <= end - FIXED_V4.size:
        return None
    fields = _CHECKED_FIELDS[mapping[position + _HOST_FLAGS_AT] & HOST_FLAGS]
    body_at = position + fields.size
    if body_at > end:
        return None
    size, magic, crc, queue_id, queue_offset, physical, sys_flag, store_timestamp, body_bytes = (
        fields.unpack_from(mapping, position)
    )
    if magic == MAGIC_V1:
        topic_at = body_at + body_bytes + 1
    elif magic == MAGIC_V2:
        topic_at = body_at + body_bytes + 2
    else:
        return None
    if physical != physical_offset or body_bytes < 0 or topic_at > end:
        return None
    topic_bytes = mapping[topic_at - 1]
    if magic == MAGIC_V2:
        topic_bytes |= mapping[topic_at - 2] << 8
    properties_at = topic_at + topic_bytes + 2
    if properties_at > end:
        return None
    (properties_bytes,) = _INT16.unpack_from(mapping, properties_at - 2)
    record_end = properties_at + properties_bytes
    if properties_bytes < 0 or record_end > end or record_end - position != size:
        return None
    if check_crc and crc32(mapping[body_at : body_at + body_bytes]) & 0x7FFFFFFF != crc:
        return None
    return StoredRecord(
        physical_offset,
        size,
        mapping[topic_at : topic_at + topic_bytes],
        queue_id,
        queue_offset,
        sys_flag,
        store_timestamp,
        properties_bytes,
    )


def is_blank(mapping: mmap.mmap, position: int, end: int) -> bool:
    """Return True if a blank record at ``position`` marks the rest of the segment as unused."""
    return position <= end - BLANK_BYTES and BLANK.unpack_from(mapping, position)[1] == MAGIC_BLANK


def is_torn(mapping: mmap.mmap, start: int, end: int) -> bool:
    """Return True if a sector of the bytes from ``start`` to ``end`` of a file never reached the disk.

    The CRC of a record covers its body only, but the sectors of a record reach the disk in any order. A file
    begins as zeros, and the store refuses topics and properties with this character.
    """
    at = mapping.find(b"\0", start, end)
    while at >= 0:
        stop = min(end, at - at % _SECTOR_BYTES + _SECTOR_BYTES)
        if (at % _SECTOR_BYTES == 0 or at == start) and not mapping[at:stop].strip(b"\0"):
            return True
        at = mapping.find(b"\0", stop, end)
    return False


# Log position, size, topic, queue id, queue offset, sysFlag, store timestamp, properties text.
ScannedRecord = tuple[int, int, bytes, int, int, int, int, bytes]


class SegmentScan:
    """Walks the records of one segment in order.

    Recovery reads millions of records, so the walk checks a record with IPv4 addresses itself, by the rules
    of ``check_record``, and yields plain tuples.

    Args:
        start: position in the segment of the first record.
        ends_torn: end at a record that a power failure has torn, see ``is_torn``.

    Attributes:
        position: after the walk, position in the segment of the first byte behind the last intact record.
        is_complete: True if the walk ended at the blank record, or exactly at the segment's end.
    """

    def __init__(
        self, segment: MappedFile, check_crc: bool, *, start: int = 0, ends_torn: bool = False
    ) -> None:
        self._segment = segment
        self._check_crc = check_crc
        self._ends_torn = ends_torn
        self.position = start
        self.is_complete = False

    def __iter__(self) -> Iterator[ScannedRecord]:
        mapping, base, end = self._segment.open_map(), self._segment.base, self._segment.size
        check_crc, ends_torn = self._check_crc, self._ends_torn
        unpack = _CHECKED_FIELDS[0].unpack_from
        head_bytes = FIXED_V4.size
        last = end - head_bytes
        position = self.position
        while position <= last:
            size, magic, crc, queue_id, queue_offset, physical, sys_flag, timestamp, body_bytes = unpack(
                mapping, position
            )
            record_end = position + size
            if magic != MAGIC_V1 or sys_flag & HOST_FLAGS:
                other = self._check_other(mapping, position)
                if other is None:
                    break
                topic, properties = other[2], other[7]
                record_end = position + other[1]
            else:
                body_at = position + head_bytes
                body_end = body_at + body_bytes
                if physical != base + position or body_bytes < 0 or not body_end < record_end <= end:
                    break
                # Length of the topic, topic, length of the properties, properties.
                rest = mapping[body_end:record_end]
                properties_at = rest[0] + 3
                properties = rest[properties_at:]
                if (
                    len(rest) < properties_at
                    or rest[properties_at - 2] << 8 | rest[properties_at - 1] != len(properties)
                    or len(properties) > MAX_PROPERTIES_BYTES
                    or (check_crc and crc32(mapping[body_at:body_end]) & 0x7FFFFFFF != crc)
                ):
                    break
                topic = rest[1 : properties_at - 2]
                other = None
            if b"\0" in topic:
                break
            if (
                ends_torn
                and b"\0" in properties
                and is_torn(mapping, record_end - len(properties), record_end)
            ):
                break
            yield other or (
                physical,
                size,
                topic,
                queue_id,
                queue_offset,
                sys_flag,
                timestamp,
                properties,
            )
            position = record_end
        self.position = position
        self.is_complete = position == end or is_blank(mapping, position, end)

    def _check_other(self, mapping: mmap.mmap, position: int) -> ScannedRecord | None:
        """Check a record of any layout; None if it is not intact."""
        segment = self._segment
        record = check_record(mapping, position, segment.size, segment.base + position, self._check_crc)
        if record is None:
            return None
        return (*record[:-1], record.properties(mapping, segment.base))
