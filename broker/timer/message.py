"""Reads records of the timer topic, and makes the messages that are delivered (docs/spec/timers.md 3)."""

from __future__ import annotations

from typing import Final, NamedTuple

from rewindmq.broker.send.sender import tags_code_of
from rewindmq.broker.store.model import StoredMessage
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message.properties import (
    PROPERTY_SEPARATOR,
    REAL_QID,
    REAL_TOPIC,
    TIMER_DEL_UNIQKEY,
    TIMER_DEQUEUE_MS,
    TIMER_ENQUEUE_MS,
    TIMER_OUT_MS,
    TIMER_ROLL_TIMES,
    UNIQ_KEY,
    find_property,
    without_properties,
)
from rewindmq.protocol.message.record import RecordError, decode_record
from rewindmq.protocol.names import TIMER_TOPIC, TRANS_HALF_TOPIC
from rewindmq.protocol.text import java_hash

# TIMER_ENQUEUE_MS of a message that was due when it was taken from the timer queue.
NEVER_ENQUEUED: Final = 0x7FFF_FFFF_FFFF_FFFF
_ENQUEUE_MARK: Final = TIMER_ENQUEUE_MS.encode() + b"\x01"
_MOST_DIGITS: Final = 10
_STAMPS: Final = (TIMER_ENQUEUE_MS, TIMER_DEQUEUE_MS)


class TimerFields(NamedTuple):
    """What the index must know of a message.

    Attributes:
        out_ms: the time of its slot, if it is not rolled.
        topic_hash: ``java_hash`` of its real topic.
        deletes: it deletes another message.
    """

    out_ms: int
    topic_hash: int
    deletes: bool


def timer_fields(properties: bytes) -> TimerFields | None:
    """Return the fields of a record's properties; None if it is no timer message."""
    text = properties.decode("utf-8", "replace")
    out_ms = find_property(text, TIMER_OUT_MS)
    if out_ms is None or not (out_ms.isascii() and out_ms.isdigit() and len(out_ms) < 18):
        return None
    topic = find_property(text, REAL_TOPIC)
    return TimerFields(int(out_ms), java_hash(topic) if topic else 0, deletes_other(text))


def read_message(record: bytes | None) -> MessageExt | None:
    """Decode a record; return None if there is none."""
    try:
        return None if record is None else decode_record(record)
    except RecordError:
        return None


def delete_key(message: MessageExt, *, with_topic: bool) -> str | None:
    """Return the key by which another message deletes this one; None if it has none.

    Source: ``TimerMessageStore#buildDeleteKey``.
    """
    unique_key = find_property(message.packed_properties.decode("utf-8", "replace"), UNIQ_KEY)
    if unique_key is None or not with_topic:
        return unique_key
    return f"{message.properties.get(REAL_TOPIC)}+{unique_key}"


def deletes_other(text: str) -> bool:
    """Return True if a message with these properties deletes another."""
    return TIMER_DEL_UNIQKEY in text and find_property(text, TIMER_DEL_UNIQKEY) is not None


def delivered(message: MessageExt, text: str, enqueue_ms: int, now_ms: int) -> StoredMessage | None:
    """Return the message for its real topic; None if its topic or queue is invalid.

    The timer topic is invalid: the message would be due there at once, and again without end. The message for
    its real topic keeps its properties, REAL_TOPIC and REAL_QID among them, and gets the times of enqueueing
    and dequeueing.

    Args:
        text: its properties, decoded.
    """
    topic, queue_id = find_property(text, REAL_TOPIC), _number(find_property(text, REAL_QID))
    if not topic or queue_id is None or topic in (TIMER_TOPIC, TRANS_HALF_TOPIC):
        return None
    properties = _stamped(message.packed_properties, enqueue_ms, now_ms)
    return _stored(message, text, topic, queue_id, properties)


def rolled(message: MessageExt, text: str, enqueue_ms: int, now_ms: int) -> StoredMessage:
    """Return the message for the timer topic again, because it is due beyond the wheel's window.

    Args:
        text: its properties, decoded.
    """
    count = (_number(find_property(text, TIMER_ROLL_TIMES)) or 0) + 1
    kept = without_properties(text, (*_STAMPS, TIMER_ROLL_TIMES))
    properties = f"{kept}{'' if kept.endswith(PROPERTY_SEPARATOR) else PROPERTY_SEPARATOR}".encode()
    properties += f"{TIMER_ROLL_TIMES}\x01{count}{PROPERTY_SEPARATOR}".encode()
    return _stored(message, text, TIMER_TOPIC, 0, _stamped(properties, enqueue_ms, now_ms))


def _number(text: str | None) -> int | None:
    """Return a property's number; None if it is none, or has more than ten digits."""
    if text is None or not (text.isascii() and text.isdigit()) or len(text) > _MOST_DIGITS:
        return None
    return int(text)


def _stamped(properties: bytes, enqueue_ms: int, now_ms: int) -> bytes:
    if _ENQUEUE_MARK in properties:
        properties = without_properties(properties.decode("utf-8", "replace"), _STAMPS).encode()
    if not properties.endswith(b"\x02"):
        properties += b"\x02"
    return properties + b"TIMER_ENQUEUE_MS\x01%d\x02TIMER_DEQUEUE_MS\x01%d\x02" % (enqueue_ms, now_ms)


def _stored(message: MessageExt, text: str, topic: str, queue_id: int, properties: bytes) -> StoredMessage:
    return StoredMessage(
        topic,
        queue_id,
        message.stored_body,
        properties,
        tags_code_of(text),
        message.flag,
        message.sys_flag,
        message.born_timestamp,
        message.packed_born_host,
        message.reconsume_times,
    )
