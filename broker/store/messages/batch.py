"""The records of a batch, encoded before their place in the log and their time are known.

A large batch takes some 100 ms, so a broker encodes it in slices. What other messages change meanwhile, the
queue offsets, the log positions and the store time, enters the records when they are appended, in one step.
To keep this step short, the offsets and positions within the batch are kept as large integers, one for each
piece of 128 records: one addition moves all of them to their place.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache
from itertools import chain
from typing import Final, NamedTuple
from zlib import crc32

from rewindmq.broker.store.config import CQ_ENTRY_BYTES
from rewindmq.broker.store.consume_queue.queue import entry_run
from rewindmq.broker.store.log.record_check import HOST_FLAGS
from rewindmq.broker.store.model import BatchEntries, StoredMessage
from rewindmq.protocol.limits import MAX_PROPERTIES_BYTES
from rewindmq.protocol.message.properties import PROPERTY_SEPARATOR
from rewindmq.protocol.message.record import MAGIC_V1, SYS_FLAG_AT

# Size, magic, body CRC, queue id and flag: a record up to its queue offset.
_HEAD: Final = struct.Struct(">iIiii")
_INT32: Final = struct.Struct(">i")
_INT16: Final = struct.Struct(">H")
_PLACE_BYTES: Final = 16
_RECORDS_PER_PIECE: Final = 128
# Of a record.
_PARTS: Final = 3
# Bits of a queue offset or log position.
_NUMBER_BITS: Final = 64
_SEPARATOR: Final = PROPERTY_SEPARATOR.encode()
_SEPARATOR_BYTE: Final = _SEPARATOR[0]
CRC_MASK: Final = 0x7FFF_FFFF
OTHER_FLAGS: Final = ~HOST_FLAGS


class Head(NamedTuple):
    """The layout of a record up to its body, by the kinds of its addresses.

    Attributes:
        body_at: position of the body in the record.
        host_flags: bits of the sysFlag that name the kinds.
    """

    layout: struct.Struct
    body_at: int
    host_flags: int


class _Piece(NamedTuple):
    """Some consecutive records of a batch.

    Attributes:
        parts: what precedes the queue offset of each record: the record before from its body length on, and
            the record's own first fields.
        places: of each record, its index in the batch and its position in it: 16 bytes.
        entries: of each record, its position in the batch, its size and tagsCode: a consume-queue entry.
    """

    parts: list[bytes]
    places: int
    entries: int


@cache
def _lanes(count: int, width: int) -> int:
    """Return the integer whose ``count`` parts of ``width`` bytes are all 1."""
    return int.from_bytes((bytes(width - 1) + b"\x01") * count)


@cache
def _split(count: int) -> struct.Struct:
    """Return what splits bytes into ``count`` places."""
    return struct.Struct(f"{_PLACE_BYTES}s" * count)


class BatchDraft:
    """A batch that is encoded entry by entry, and then appended as a whole.

    Args:
        message: the fields that the batch's messages share.
        topic_field: see ``ConsumeQueue``; empty if the topic is too long.
        max_body_bytes: limit of the body of each message.
        max_bytes: limit of all records.

    Attributes:
        is_legal: False if the batch cannot be stored.
        size: bytes of all records.
        starts: position of each record in the batch.
        tags_codes: of each message.
        properties: of each message.
    """

    def __init__(
        self,
        message: StoredMessage,
        head: Head | None,
        topic_field: bytes,
        max_body_bytes: int,
        max_bytes: int,
    ) -> None:
        self.message = message
        self.is_legal = head is not None and bool(topic_field)
        self.size = 0
        self.starts: list[int] = []
        self.tags_codes: list[int] = []
        self.properties: list[bytes] = []
        self._head = head
        self._topic_field = topic_field
        self._overhead = (0 if head is None else head.body_at) + len(topic_field) + _INT16.size
        self._max_body = max_body_bytes
        self._max_bytes = max_bytes
        self._pieces: list[_Piece] = []
        # Of the records that are in no piece yet.
        self._parts: list[bytes] = []
        self._sizes: list[int] = []
        self._last: tuple[bytes | memoryview, ...] = ()
        # The topic and the length of the properties, by that length: a batch has few different lengths.
        self._between: dict[int, bytes] = {}

    def __len__(self) -> int:
        return len(self.starts)

    def add(self, entries: BatchEntries) -> None:
        """Encode more messages; once ``is_legal`` is False, nothing is encoded."""
        if not self.is_legal:
            return
        shared = self.message.properties
        if shared:
            entries = [
                (body, _with_shared(own, shared), tags_code, flag) for body, own, tags_code, flag in entries
            ]
        properties = [entry[1] for entry in entries]
        # Recovery takes zero bytes for a sector that the disk has lost (``record_check.is_torn``).
        if 0 in b"".join(properties):
            self.is_legal = False
            return
        self.properties += properties
        self.tags_codes += [entry[2] for entry in entries]
        try:
            self._encode(entries)
            while len(self._parts) >= _RECORDS_PER_PIECE:
                self._complete_piece()
        except struct.error:
            # A number is out of range of its field.
            self.is_legal = False

    def _encode(self, entries: BatchEntries) -> None:
        overhead, queue_id, max_body = self._overhead, self.message.queue_id, self._max_body
        between, last, size = self._between, self._last, self.size
        pack, pack_length, join = _HEAD.pack, _INT32.pack, b"".join
        for body, properties, _, flag in entries:
            body_bytes, length = len(body), len(properties)
            if length > MAX_PROPERTIES_BYTES or body_bytes > max_body:
                self.is_legal = False
                return
            record_bytes = overhead + body_bytes + length
            head = pack(record_bytes, MAGIC_V1, crc32(body) & CRC_MASK, queue_id, flag)
            self._parts.append(join((*last, head)))
            topic_and_length = between.get(length)
            if topic_and_length is None:
                topic_and_length = between[length] = self._topic_field + _INT16.pack(length)
            last = (pack_length(body_bytes), body, topic_and_length, properties)
            self.starts.append(size)
            self._sizes.append(record_bytes)
            size += record_bytes
        self._last, self.size = last, size
        self.is_legal = size <= self._max_bytes

    def _complete_piece(self) -> None:
        """Make a piece of the first records that are in none."""
        parts, sizes = self._parts[:_RECORDS_PER_PIECE], self._sizes[:_RECORDS_PER_PIECE]
        first = len(self) - len(self._parts)
        end = first + len(parts)
        starts = self.starts[first:end]
        numbers: list[int] = [0] * (2 * len(parts))
        numbers[::2] = range(first, end)
        numbers[1::2] = starts
        places = int.from_bytes(struct.pack(f">{2 * len(parts)}q", *numbers))
        fields = chain.from_iterable(zip(starts, sizes, self.tags_codes[first:end], strict=True))
        entries = int.from_bytes(entry_run(len(parts)).pack(*fields))
        self._pieces.append(_Piece(parts, places, entries))
        del self._parts[:_RECORDS_PER_PIECE], self._sizes[:_RECORDS_PER_PIECE]

    def complete(self) -> None:
        """Encode what is left, after the last ``add``.

        ``is_legal`` is False if a number is out of range of its field.
        """
        try:
            if self._parts:
                self._complete_piece()
        except struct.error:
            self.is_legal = False

    def entries(self, physical_offset: int) -> Iterator[bytes]:
        """Return the consume-queue entries, encoded, in pieces.

        Args:
            physical_offset: of the first record.
        """
        # The log position is the first number of an entry.
        moved = physical_offset << 8 * (CQ_ENTRY_BYTES - _NUMBER_BITS // 8)
        count = move = 0
        for parts, _, entries in self._pieces:
            if len(parts) != count:
                count = len(parts)
                move = moved * _lanes(count, CQ_ENTRY_BYTES)
            yield (entries + move).to_bytes(CQ_ENTRY_BYTES * count)

    def records(
        self, physical_offset: int, queue_offset: int, timestamp: int, store_host: bytes
    ) -> Iterator[bytes]:
        """Return the bytes of the records, in pieces that a processor's cache holds.

        Args:
            physical_offset: of the first record.
            queue_offset: of the first message.
            timestamp: the store time of all, ms.

        Raises:
            struct.error: a number is out of range of its field; raised by the call, before the first piece.
        """
        moved = queue_offset << _NUMBER_BITS | physical_offset
        return self._pieces_at(moved, self._shared_fields(timestamp, store_host))

    def _pieces_at(self, moved: int, shared: bytes) -> Iterator[bytes]:
        count = move = 0
        for texts, places, _ in self._pieces:
            if len(texts) != count:
                count = len(texts)
                move = moved * _lanes(count, _PLACE_BYTES)
            placed = (places + move).to_bytes(_PLACE_BYTES * count)
            parts: list[bytes] = [shared] * (_PARTS * count)
            parts[::_PARTS] = texts
            parts[1::_PARTS] = _split(count).unpack(placed)
            yield b"".join(parts)
        yield b"".join(self._last)

    def _shared_fields(self, timestamp: int, store_host: bytes) -> bytes:
        """Return the packed fields between the log position and the body length."""
        head, message = self._head, self.message
        assert head is not None
        sys_flag = message.sys_flag & OTHER_FLAGS | head.host_flags
        fields = head.layout.pack(
            *(0, MAGIC_V1, 0, 0, 0, 0, 0, sys_flag),
            *(message.born_timestamp, message.born_host, timestamp, store_host),
            *(message.reconsume_times, 0, 0),
        )
        return fields[SYS_FLAG_AT : -_INT32.size]


def _with_shared(own: bytes, shared: bytes) -> bytes:
    """Return an inner message's properties followed by the batch's."""
    if own and own[-1] != _SEPARATOR_BYTE:
        own += _SEPARATOR
    return own + shared
