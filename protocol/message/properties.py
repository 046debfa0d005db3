"""The properties text of a message: ``name 0x01 value`` pairs joined by ``0x02``.

Specification: docs/spec/protocol.md 6.5.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError

NAME_VALUE_SEPARATOR: Final = "\x01"
PROPERTY_SEPARATOR: Final = "\x02"

# Names of MessageConst that this project reads or writes.
KEYS: Final = "KEYS"
TAGS: Final = "TAGS"
UNIQ_KEY: Final = "UNIQ_KEY"
WAIT: Final = "WAIT"
DELAY: Final = "DELAY"
RETRY_TOPIC: Final = "RETRY_TOPIC"
ORIGIN_MESSAGE_ID: Final = "ORIGIN_MESSAGE_ID"
RECONSUME_TIME: Final = "RECONSUME_TIME"
MAX_RECONSUME_TIMES: Final = "MAX_RECONSUME_TIMES"
REAL_TOPIC: Final = "REAL_TOPIC"
REAL_QID: Final = "REAL_QID"
TRAN_MSG: Final = "TRAN_MSG"
PGROUP: Final = "PGROUP"
BORN_TIMESTAMP: Final = "BORN_TIMESTAMP"
TRANSACTION_CHECK_TIMES: Final = "TRANSACTION_CHECK_TIMES"
CHECK_IMMUNITY_TIME_IN_SECONDS: Final = "CHECK_IMMUNITY_TIME_IN_SECONDS"
TRAN_PREPARED_QUEUE_OFFSET: Final = "TRAN_PREPARED_QUEUE_OFFSET"
TRANSACTION_ID: Final = "__transactionId__"
CLUSTER: Final = "CLUSTER"
# Timer messages of 5.x: what the producer asks for, and what the broker adds.
TIMER_DELAY_SEC: Final = "TIMER_DELAY_SEC"
TIMER_DELAY_MS: Final = "TIMER_DELAY_MS"
TIMER_DELIVER_MS: Final = "TIMER_DELIVER_MS"
TIMERS: Final = (TIMER_DELAY_SEC, TIMER_DELAY_MS, TIMER_DELIVER_MS)
TIMER_OUT_MS: Final = "TIMER_OUT_MS"
TIMER_ENQUEUE_MS: Final = "TIMER_ENQUEUE_MS"
TIMER_DEQUEUE_MS: Final = "TIMER_DEQUEUE_MS"
TIMER_ROLL_TIMES: Final = "TIMER_ROLL_TIMES"
TIMER_DEL_UNIQKEY: Final = "TIMER_DEL_UNIQKEY"
MIN_OFFSET: Final = "MIN_OFFSET"
MAX_OFFSET: Final = "MAX_OFFSET"
MSG_REGION: Final = "MSG_REGION"
TRACE_ON: Final = "TRACE_ON"
# Request and reply. TTL is the requester's time-out in ms; MSG_TYPE of a reply is REPLY_MESSAGE_FLAG.
CORRELATION_ID: Final = "CORRELATION_ID"
REPLY_TO_CLIENT: Final = "REPLY_TO_CLIENT"
TTL: Final = "TTL"
MSG_TYPE: Final = "MSG_TYPE"
PUSH_REPLY_TIME: Final = "PUSH_REPLY_TIME"
ARRIVE_TIME: Final = "ARRIVE_TIME"
REPLY_MESSAGE_FLAG: Final = "reply"
# Of popped messages: the handle, and when the message was popped for the first time, in ms.
POP_CK: Final = "POP_CK"
FIRST_POP_TIME: Final = "1ST_POP_TIME"
# The group for which a message was stored in a retry topic of POP.
ORIGIN_GROUP: Final = "ORIGIN_GROUP"


def parse_properties(text: str) -> dict[str, str]:
    """Parse the text, skip empty and malformed pieces; the last duplicate applies."""
    pairs: dict[str, str] = {}
    for piece in text.split(PROPERTY_SEPARATOR):
        name, _, value = piece.partition(NAME_VALUE_SEPARATOR)
        if name and value:
            pairs[name] = value
    return pairs


def format_properties(properties: Mapping[str, str]) -> str:
    """Write the text, without a trailing separator, as RocketMQ 4.9.4 does.

    Raises:
        RequestError: MESSAGE_ILLEGAL (13), a name or value contains one of the two separators.
    """
    pairs = [f"{name}{NAME_VALUE_SEPARATOR}{value}" for name, value in properties.items()]
    text = PROPERTY_SEPARATOR.join(pairs)
    # Counting separators is much cheaper than a search in each name and value.
    if text.count(NAME_VALUE_SEPARATOR) != len(pairs) or text.count(PROPERTY_SEPARATOR) >= (len(pairs) or 1):
        raise RequestError(ResponseCode.MESSAGE_ILLEGAL, _separator_fault(properties))
    return text


def _separator_fault(properties: Mapping[str, str]) -> str:
    for name, value in properties.items():
        if NAME_VALUE_SEPARATOR in name + value or PROPERTY_SEPARATOR in name + value:
            return f"property {name!r} holds a character that separates properties"
    raise AssertionError("no property holds a separator")


def with_property(text: str, name: str, value: str) -> str:
    """Return the text without old values of ``name``, with the new value at its end."""
    mark = name + NAME_VALUE_SEPARATOR
    kept = [piece for piece in text.split(PROPERTY_SEPARATOR) if piece and not piece.startswith(mark)]
    return PROPERTY_SEPARATOR.join((*kept, mark + value))


def without_properties(text: str, names: Collection[str]) -> str:
    """Return the text without the properties of these names."""
    pieces = text.split(PROPERTY_SEPARATOR)
    return PROPERTY_SEPARATOR.join(
        piece for piece in pieces if piece.partition(NAME_VALUE_SEPARATOR)[0] not in names
    )


def ended(properties: bytes) -> bytes:
    """Return the properties with a separator at their end, as 5.3.3 does; empty ones stay empty."""
    separator = PROPERTY_SEPARATOR.encode()
    return properties + separator if properties and not properties.endswith(separator) else properties


def find_property(text: str, name: str) -> str | None:
    """Return the last value of ``name`` in a properties text, without parsing the rest of it."""
    needle = PROPERTY_SEPARATOR + name + NAME_VALUE_SEPARATOR
    end = len(text)
    while True:
        start = text.rfind(needle, 0, end)
        if start < 0:
            break
        value_at = start + len(needle)
        value_end = text.find(PROPERTY_SEPARATOR, value_at)
        value = text[value_at:] if value_end < 0 else text[value_at:value_end]
        if value:
            return value
        # A pair with an empty value is ignored: an earlier pair of the same name applies.
        end = start + 1
    if not text.startswith(needle[1:]):
        return None
    value_end = text.find(PROPERTY_SEPARATOR)
    return (text[len(needle) - 1 :] if value_end < 0 else text[len(needle) - 1 : value_end]) or None
