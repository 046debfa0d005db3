"""Trace records and their text form (RocketMQ 4.9.4 ``TraceDataEncoder``).

Fields are separated by the character 1, and each record ends with the character 2. A missing value is
written as ``null``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from rewindmq.protocol.errors import RewindMQError

FIELD_SEPARATOR: Final = "\x01"
RECORD_END: Final = "\x02"
DEFAULT_TRACE_TOPIC: Final = "RMQ_SYS_TRACE_TOPIC"
# Stands for tags, keys or a region that a message does not have.
NULL: Final = "null"

# Ordinals of MessageType and ConsumeReturnType.
NORMAL, HALF, COMMITTED, DELAYED = range(4)
SUCCESS, TIME_OUT, EXCEPTION, RETURNED_NULL, FAILED = range(5)


class TraceError(RewindMQError):
    """A text that is not a trace record."""


class Pub(NamedTuple):
    """A message that was sent.

    Attributes:
        timestamp, cost_time: start and duration of the send, ms.
        message_type: NORMAL, HALF, COMMITTED or DELAYED.
        client_host: the producer's address; RewindMQ's records leave it out.
    """

    timestamp: int
    region: str
    group: str
    topic: str
    msg_id: str
    tags: str
    keys: str
    store_host: str
    body_length: int
    cost_time: int
    message_type: int
    offset_msg_id: str
    success: bool
    client_host: str = ""


class SubBefore(NamedTuple):
    """A message that a listener is about to get; ``request_id`` is that of the listener's call."""

    timestamp: int
    region: str
    group: str
    request_id: str
    msg_id: str
    retry_times: int
    keys: str


class SubAfter(NamedTuple):
    """The outcome of a listener's call for one message.

    Attributes:
        cost_time: ms, an equal share of the call's duration.
        context_code: SUCCESS, TIME_OUT, EXCEPTION, RETURNED_NULL or FAILED.
        timestamp, group: 0 and "" in records of clients before 4.9.
    """

    request_id: str
    msg_id: str
    cost_time: int
    success: bool
    keys: str
    context_code: int = SUCCESS
    timestamp: int = 0
    group: str = ""


class EndTransaction(NamedTuple):
    """The end of a half message's transaction.

    Attributes:
        state: COMMIT_MESSAGE, ROLLBACK_MESSAGE or UNKNOW.
        from_check: True if the broker had asked for the state.
    """

    timestamp: int
    region: str
    group: str
    topic: str
    msg_id: str
    tags: str
    keys: str
    store_host: str
    message_type: int
    transaction_id: str
    state: str
    from_check: bool


TraceRecord = Pub | SubBefore | SubAfter | EndTransaction
_KINDS: Final[dict[str, type[TraceRecord]]] = {
    kind.__name__: kind for kind in (Pub, SubBefore, SubAfter, EndTransaction)
}
# Fields at the end of a record that clients of some releases leave out.
_OPTIONAL: Final = {"Pub": 1, "SubAfter": 3}
_NUMBERS: Final = frozenset(
    ("timestamp", "body_length", "cost_time", "message_type", "retry_times", "context_code")
)
_FLAGS: Final = frozenset(("success", "from_check"))


def encode(record: TraceRecord) -> str:
    """Return one record as text; separators inside fields become blanks (in Java they break the record)."""
    values: Sequence[object] = record
    if isinstance(record, Pub) and not record.client_host:
        values = record[:-1]
    texts = [_text(value) for value in values]
    return FIELD_SEPARATOR.join((type(record).__name__, *texts)) + RECORD_END


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value).replace(FIELD_SEPARATOR, " ").replace(RECORD_END, " ")


def decode(text: str) -> list[TraceRecord]:
    """Return all records of a trace message, except kinds unknown to RewindMQ (5.x: Recall).

    Raises:
        TraceError: a record is cut short, or has text in place of a number.
    """
    records: list[TraceRecord] = []
    for line in text.split(RECORD_END):
        name, *values = line.split(FIELD_SEPARATOR)
        kind = _KINDS.get(name)
        if kind is not None:
            records.append(_decode(kind, name, values))
    return records


def _decode(kind: type[TraceRecord], name: str, values: list[str]) -> TraceRecord:
    fields = kind._fields
    if name == "Pub" and len(values) == len(fields) - 2:
        # Before 4.5 there was no offset message id.
        values.insert(fields.index("offset_msg_id"), "")
    if len(values) < len(fields) - _OPTIONAL.get(name, 0):
        raise TraceError(f"a {name} record of {len(values)} fields is cut short")
    try:
        typed = [_value(field, value) for field, value in zip(fields, values, strict=False)]
    except ValueError:
        raise TraceError(f"a {name} record has text in place of a number") from None
    return kind(*typed)


def _value(field: str, text: str) -> Any:
    if field in _NUMBERS:
        return int(text)
    return text == "true" if field in _FLAGS else text


def trace_keys(record: TraceRecord) -> list[str]:
    """Return the keys under which a record is found: the message's id, and its own keys."""
    return [record.msg_id] if record.keys == "null" else [record.msg_id, *record.keys.split()]
