"""The message record, byte for byte as RocketMQ stores and sends it.

Specification: docs/spec/store.md 3, docs/spec/protocol.md 6.1.

One layout serves the commit log, pull replies and the pipeline. All integers are big-endian and signed.
"""

from __future__ import annotations

import struct
import zlib
from functools import lru_cache
from typing import Final

from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.limits import MAX_PROPERTIES_BYTES, MAX_TOPIC_LENGTH
from rewindmq.protocol.message.message import MessageExt, RecordFields
from rewindmq.protocol.message.sysflag import MessageSysFlag
from rewindmq.protocol.names import MAX_NAME_BYTES

MAGIC_V1: Final = 0xDAA320A7
MAGIC_V2: Final = 0xDAA320AB
MAGIC_BLANK: Final = 0xCBD43194

# Everything before the body, including the body's length, if both hosts are IPv4.
FIXED_V4: Final = struct.Struct(">iIiiiqqiq8sq8siqi")
BODY_OFFSET_V4: Final = 88
# Fixed part plus the lengths of topic (V1) and properties.
OVERHEAD_V4: Final = 91

# Positions of the fields that are read or changed in place, from the record's first byte.
QUEUE_OFFSET_AT: Final = 20
PHYSICAL_OFFSET_AT: Final = 28
SYS_FLAG_AT: Final = 36
STORE_TIMESTAMP_AT_V4: Final = 56
STORE_TIMESTAMP_AT_V6: Final = 68

BLANK: Final = struct.Struct(">iI")
BLANK_BYTES: Final = 8

_HEAD: Final = struct.Struct(">iIiiiqqiq")
_TAIL: Final = struct.Struct(">iqi")
_INT64: Final = struct.Struct(">q")
_INT16: Final = struct.Struct(">h")
_FIXED: Final = FIXED_V4.unpack_from
_LENGTH_OF_PROPERTIES: Final = _INT16.unpack_from
_V6_HOSTS: Final = int(MessageSysFlag.BORNHOST_V6 | MessageSysFlag.STOREHOST_V6)


class RecordError(RewindMQError):
    """Bytes that are not an intact record."""


def body_crc(stored_body: bytes) -> int:
    """CRC-32 of the body as stored, cut to 31 bits."""
    return zlib.crc32(stored_body) & 0x7FFFFFFF


def encode_record(
    *,
    topic: str,
    stored_body: bytes,
    properties: bytes,
    queue_id: int,
    queue_offset: int,
    physical_offset: int,
    born_timestamp: int,
    born_host: bytes,
    store_timestamp: int,
    store_host: bytes,
    flag: int = 0,
    sys_flag: int = 0,
    reconsume_times: int = 0,
    prepared_transaction_offset: int = 0,
) -> bytes:
    """Return one record: V1, or V2 if the topic is longer than 127 bytes.

    Args:
        born_host, store_host: 8 bytes (IPv4) or 20 (IPv6) each; this function sets the matching sysFlag bits.
        properties: the properties text in UTF-8, at most 32 767 bytes.
        topic: at most 255 bytes in UTF-8.

    Raises:
        RecordError: topic or properties over their limits.
    """
    name = topic.encode()
    if len(name) > MAX_NAME_BYTES or len(properties) > MAX_PROPERTIES_BYTES:
        raise RecordError(f"topic of {len(name)} bytes or properties of {len(properties)} are over the limit")
    magic, length_bytes = (MAGIC_V1, 1) if len(name) <= MAX_TOPIC_LENGTH else (MAGIC_V2, _INT16.size)
    sys_flag &= ~_V6_HOSTS
    if len(born_host) == 20:
        sys_flag |= MessageSysFlag.BORNHOST_V6
    if len(store_host) == 20:
        sys_flag |= MessageSysFlag.STOREHOST_V6
    total = OVERHEAD_V4 - 1 + len(born_host) + len(store_host) - 16
    total += len(stored_body) + length_bytes + len(name) + len(properties)
    return b"".join(
        (
            _HEAD.pack(
                total,
                magic,
                body_crc(stored_body),
                queue_id,
                flag,
                queue_offset,
                physical_offset,
                int(sys_flag),
                born_timestamp,
            ),
            born_host,
            _INT64.pack(store_timestamp),
            store_host,
            _TAIL.pack(reconsume_times, prepared_transaction_offset, len(stored_body)),
            stored_body,
            len(name).to_bytes(length_bytes, "big"),
            name,
            _INT16.pack(len(properties)),
            properties,
        )
    )


@lru_cache(maxsize=4_096)
def _decode_topic(name: bytes) -> str:
    return name.decode("utf-8", "replace")


def decode_record(data: bytes | memoryview, position: int = 0, broker_name: str = "") -> MessageExt:
    """Return the record that starts at ``position``; ``crc_ok`` checks its CRC.

    Raises:
        RecordError: the record is cut short, its magic is unknown, or its lengths do not add up.
    """
    if isinstance(data, memoryview):
        # Copy only this record, not the whole log segment.
        total = int.from_bytes(data[position : position + 4], "big", signed=True)
        data, position = bytes(data[position : position + total]), 0
    return _decode(data, position, broker_name)


def _decode(data: bytes, position: int, broker_name: str) -> MessageExt:
    try:
        fields: RecordFields = _FIXED(data, position)
        if fields[1] == MAGIC_V1 and not fields[7] & _V6_HOSTS:
            body_at = position + BODY_OFFSET_V4
            body_end = body_at + fields[14]
            topic_at = body_end + 1
            topic_end = topic_at + data[body_end]
        else:
            fields, body_at, topic_at, topic_end = _unpack_rare(data, position)
            body_end = body_at + fields[14]
        (properties_length,) = _LENGTH_OF_PROPERTIES(data, topic_end)
    except (struct.error, IndexError):
        raise RecordError(f"record at {position} is cut short") from None
    properties_at = topic_end + 2
    end = properties_at + properties_length
    if (
        end - position != fields[0]
        or end > len(data)
        or fields[14] < 0
        or properties_length < 0
        or topic_end < topic_at
    ):
        raise RecordError(f"lengths of the record at {position} do not add up to {fields[0]}")
    return MessageExt(
        fields,
        data[body_at:body_end],
        _decode_topic(data[topic_at:topic_end]),
        data[properties_at:end],
        broker_name,
    )


def _unpack_rare(data: bytes, position: int) -> tuple[RecordFields, int, int, int]:
    """Unpack a record with an IPv6 host or 5.x's magic: return its fields and where body and topic are."""
    head = _HEAD.unpack_from(data, position)
    magic, sys_flag = head[1], head[7]
    if magic not in (MAGIC_V1, MAGIC_V2):
        raise RecordError(f"magic {magic:#010x} at {position} is not a record's")
    born_at = position + _HEAD.size
    born_end = born_at + (20 if sys_flag & MessageSysFlag.BORNHOST_V6 else 8)
    store_at = born_end + _INT64.size
    store_end = store_at + (20 if sys_flag & MessageSysFlag.STOREHOST_V6 else 8)
    (store_timestamp,) = _INT64.unpack_from(data, born_end)
    reconsume_times, prepared_offset, body_length = _TAIL.unpack_from(data, store_end)
    body_at = store_end + _TAIL.size
    topic_length_at = body_at + body_length
    if magic == MAGIC_V1:
        topic_at = topic_length_at + 1
        topic_end = topic_at + data[topic_length_at]
    else:
        topic_at = topic_length_at + _INT16.size
        topic_end = topic_at + _INT16.unpack_from(data, topic_length_at)[0]
    fields = (
        *head,
        data[born_at:born_end],
        store_timestamp,
        data[store_at:store_end],
        reconsume_times,
        prepared_offset,
        body_length,
    )
    return fields, body_at, topic_at, topic_end


def decode_records(data: bytes, broker_name: str = "") -> list[MessageExt]:
    """Return the messages of a record stream up to the first damaged record; see ``decode_stream``."""
    return decode_stream(data, broker_name)[0]


def decode_stream(data: bytes, broker_name: str = "") -> tuple[list[MessageExt], RecordError | None]:
    """Decode a record stream: records in sequence, as in pull responses (docs/spec/protocol.md 6.1).

    Decoding stops at the first record that does not parse and drops the rest, as Java's client does.

    Returns:
        The messages, and the error at which decoding stopped; None if it reached the end.
    """
    messages: list[MessageExt] = []
    position = 0
    end = len(data)
    try:
        while position < end:
            message = _decode(data, position, broker_name)
            messages.append(message)
            position += message.store_size
    except RecordError as error:
        return messages, error
    return messages, None


def crc_ok(message: MessageExt) -> bool:
    """Return True if the stored body matches the CRC in its record."""
    return body_crc(message.stored_body) == message.body_crc
