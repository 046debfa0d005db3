"""Rewrites records of a retry topic: clients receive them under the topic that they popped.

Source: RocketMQ 5.5.1 ``PopMessageProcessor#popMsgFromQueue`` (``popResponseReturnActualRetryTopic=false``).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from rewindmq.broker.store.consume_queue.queue import topic_field_of
from rewindmq.protocol.message.properties import (
    NAME_VALUE_SEPARATOR,
    POP_CK,
    PROPERTY_SEPARATOR,
    find_property,
)
from rewindmq.protocol.message.record import MAGIC_V1, QUEUE_OFFSET_AT, decode_record
from rewindmq.protocol.pop.extra_info import build_extra_info

_SIZE: Final = struct.Struct(">i").unpack_from
_HEAD: Final = struct.Struct(">iI")
_INT16: Final = struct.Struct(">H")
_INT64: Final = struct.Struct(">q").unpack_from


def records_in(body: bytes) -> Iterator[tuple[int, int]]:
    """Yield where each record of a read begins and ends."""
    start = 0
    while start < len(body):
        end = start + _SIZE(body, start)[0]
        yield start, end
        start = end


def queue_offsets_in(body: bytes) -> list[int]:
    """Return the queue offset of each record of a read."""
    return [_INT64(body, start + QUEUE_OFFSET_AT)[0] for start, _ in records_in(body)]


def under_topic(
    body: bytes,
    topic: str,
    start_offset: int,
    pop_time: int,
    invisible_time: int,
    revive_queue_id: int,
    broker_name: str,
) -> bytes:
    """Return the records of a retry topic under another topic, each with its handle in POP_CK.

    A record that has POP_CK keeps it.
    """
    field = topic_field_of(topic)
    pieces = []
    for start, end in records_in(body):
        record = body[start:end]
        message = decode_record(record)
        properties = message.packed_properties
        text = properties.decode("utf-8", "replace")
        if POP_CK not in text or find_property(text, POP_CK) is None:
            handle = build_extra_info(
                start_offset,
                pop_time,
                invisible_time,
                revive_queue_id,
                message.topic,
                broker_name,
                message.queue_id,
                message.queue_offset,
            )
            if properties and not properties.endswith(PROPERTY_SEPARATOR.encode()):
                properties += PROPERTY_SEPARATOR.encode()
            properties += f"{POP_CK}{NAME_VALUE_SEPARATOR}{handle}{PROPERTY_SEPARATOR}".encode()
        tail = field + _INT16.pack(len(properties)) + properties
        # Up to the end of the body: what follows is the topic, the length of the properties and these.
        kept = _end_of_body(record, len(message.packed_properties), message.topic)
        pieces.append(_HEAD.pack(kept + len(tail), MAGIC_V1) + record[_HEAD.size : kept] + tail)
    return b"".join(pieces)


def _end_of_body(record: bytes, properties_bytes: int, topic: str) -> int:
    length_bytes = 1 if _HEAD.unpack_from(record)[1] == MAGIC_V1 else _INT16.size
    return len(record) - properties_bytes - _INT16.size - len(topic.encode()) - length_bytes
