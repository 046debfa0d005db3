"""Records as recovery and reads by position meet them: possibly torn, stale, or no record at all."""

from __future__ import annotations

import mmap
import struct
import zlib
from typing import Final, NamedTuple

from rewindmq.broker.store.mapped_file import MappedFile
from rewindmq.protocol.record import BLANK, BLANK_BYTES, FIXED_V4, MAGIC_BLANK, MAGIC_V1, MAGIC_V2
from rewindmq.protocol.sysflag import MessageSysFlag


class RecordHead(NamedTuple):
    """How the fields before the body are packed, which depends on the sizes of the two hosts."""

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

_SYS_FLAG: Final = struct.Struct(">i")
_INT16: Final = struct.Struct(">h")
_SYS_FLAG_AT: Final = 36


class StoredRecord(NamedTuple):
    """What consume queues and the index need to know of a record."""

    physical_offset: int
    size: int
    topic: bytes
    queue_id: int
    queue_offset: int
    sys_flag: int
    store_timestamp: int
    properties: bytes


def check_record(
    mapping: mmap.mmap, position: int, end: int, physical_offset: int, check_crc: bool
) -> StoredRecord | None:
    """The record at ``position`` of a segment, or None when there is no intact one.

    Intact means: a known magic, its own log position in it, lengths that add up and stay before ``end``, and
    the body's CRC if asked for. V2 records (5.x, topics above 127 bytes) are read too.
    """
    if not 0 <= position <= end - FIXED_V4.size:
        return None
    head = RECORD_HEADS[_SYS_FLAG.unpack_from(mapping, position + _SYS_FLAG_AT)[0] & HOST_FLAGS]
    body_at = position + head.body_at
    if body_at > end:
        return None
    (
        size,
        magic,
        crc,
        queue_id,
        _flag,
        queue_offset,
        physical,
        sys_flag,
        _born_timestamp,
        _born_host,
        store_timestamp,
        _store_host,
        _reconsume_times,
        _prepared,
        body_bytes,
    ) = head.layout.unpack_from(mapping, position)
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
    if check_crc and zlib.crc32(mapping[body_at : body_at + body_bytes]) & 0x7FFFFFFF != crc:
        return None
    return StoredRecord(
        physical_offset,
        size,
        mapping[topic_at : topic_at + topic_bytes],
        queue_id,
        queue_offset,
        sys_flag,
        store_timestamp,
        mapping[properties_at:record_end],
    )


def is_blank(mapping: mmap.mmap, position: int, end: int) -> bool:
    """Whether the record at ``position`` says that the rest of the segment is unused."""
    return position <= end - BLANK_BYTES and BLANK.unpack_from(mapping, position)[1] == MAGIC_BLANK


class SegmentScan:
    """Walks the records of one segment in order.

    Attributes:
        position: within the segment, where the walk stands; after it, where the first thing that is no
            intact record starts.
        is_complete: the walk ended at the blank record (or exactly at the segment's end).
    """

    def __init__(self, segment: MappedFile, check_crc: bool) -> None:
        self._segment = segment
        self._mapping = segment.open_map()
        self._check_crc = check_crc
        self.position = 0
        self.is_complete = False

    def next_record(self) -> StoredRecord | None:
        """The next record; None at the end."""
        segment = self._segment
        record = check_record(
            self._mapping, self.position, segment.size, segment.base + self.position, self._check_crc
        )
        if record is not None:
            self.position += record.size
        else:
            self.is_complete = self.position == segment.size or is_blank(
                self._mapping, self.position, segment.size
            )
        return record
