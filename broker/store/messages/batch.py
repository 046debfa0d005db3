"""The records of a batch, encoded before their place in the log and their time are known.

A large batch takes some ms, so a broker encodes it in slices. What other messages change meanwhile, the
queue offsets, the log positions and the store time, enters the records when they are appended.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple
from zlib import crc32

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
# Of a record, and of a consume-queue entry.
_PARTS: Final = 3
_NUMBERS: Final = 3
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


class BatchDraft:
    """A batch that is encoded entry by entry, and then appended as a whole.

    Args:
        message: the fields that the batch's messages share.
        topic_field: see ``ConsumeQueue``; empty if the topic is too long.
        max_body_bytes: limit of the body of each message.

    Attributes:
        is_legal: False if the batch cannot be stored.
        size: bytes of all records.
        tags_codes: of each message.
        properties: of each message.
    """

    def __init__(
        self, message: StoredMessage, head: Head | None, topic_field: bytes, max_body_bytes: int
    ) -> None:
        self.message = message
        self.is_legal = head is not None and bool(topic_field)
        self.size = 0
        self._sizes: list[int] = []
        self.tags_codes: list[int] = []
        self.properties: list[bytes] = []
        self._head = head
        self._topic_field = topic_field
        self._overhead = (0 if head is None else head.body_at) + len(topic_field) + _INT16.size
        self._max_body = max_body_bytes
        # Where each record begins in the batch.
        self._starts: list[int] = []
        # The first record up to its queue offset; each record from its body length on, with the next one's
        # first fields.
        self._pieces: list[bytes] = []
        self._last: tuple[bytes | memoryview, ...] = ()
        # The topic and the length of the properties, by that length: a batch has few different lengths.
        self._between: dict[int, bytes] = {}

    def __len__(self) -> int:
        return len(self._sizes)

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
            self._pieces.append(join((*last, head)))
            topic_and_length = between.get(length)
            if topic_and_length is None:
                topic_and_length = between[length] = self._topic_field + _INT16.pack(length)
            last = (pack_length(body_bytes), body, topic_and_length, properties)
            self._starts.append(size)
            self._sizes.append(record_bytes)
            size += record_bytes
        self._last, self.size = last, size

    def entries(self, physical_offset: int) -> list[int]:
        """Return log position, size and tagsCode of each record in sequence.

        Args:
            physical_offset: of the first record.
        """
        numbers: list[int] = [0] * (_NUMBERS * len(self))
        numbers[::_NUMBERS] = [physical_offset + start for start in self._starts]
        numbers[1::_NUMBERS] = self._sizes
        numbers[2::_NUMBERS] = self.tags_codes
        return numbers

    def records(
        self, positions: Sequence[int], queue_offset: int, timestamp: int, store_host: bytes
    ) -> Iterator[bytes]:
        """Return the bytes of the records, in pieces that a processor's cache holds.

        Args:
            positions: log position of each record.
            queue_offset: of the first message.
            timestamp: the store time of all, ms.

        Raises:
            struct.error: a number is out of range of its field; raised by the call, before the first piece.
        """
        return self._pieces_of(positions, queue_offset, self._shared_fields(timestamp, store_host))

    def _pieces_of(self, positions: Sequence[int], queue_offset: int, shared: bytes) -> Iterator[bytes]:
        for first in range(0, len(positions), _RECORDS_PER_PIECE):
            part = positions[first : first + _RECORDS_PER_PIECE]
            count = len(part)
            numbers: list[int] = [0] * (2 * count)
            numbers[::2] = range(queue_offset + first, queue_offset + first + count)
            numbers[1::2] = part
            places = struct.pack(f">{2 * count}q", *numbers)
            parts: list[bytes] = [shared] * (_PARTS * count)
            parts[::_PARTS] = self._pieces[first : first + count]
            parts[1::_PARTS] = [places[at : at + _PLACE_BYTES] for at in range(0, len(places), _PLACE_BYTES)]
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
