"""The records of a message trace, as text (RocketMQ 4.9.4 ``TraceDataEncoder``).

Fields are joined by the character 1, every record ends with the character 2; what is missing says ``null``.
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
    """A text that is no trace record."""


class Pub(NamedTuple):
    """A message that was sent.

    Attributes:
        timestamp, cost_time: when the send began, and how long it took, ms.
        message_type: NORMAL, HALF, COMMITTED or DELAYED.
        client_host: where the producer runs, which only records of other clients say.
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
    """A message that is about to be given to a listener; ``request_id`` is that of the call."""

    timestamp: int
    region: str
    group: str
    request_id: str
    msg_id: str
    retry_times: int
    keys: str


class SubAfter(NamedTuple):
    """What became of it.

    Attributes:
        cost_time: ms, the call's shared among its messages.
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
    """How a half message ended.

    Attributes:
        state: COMMIT_MESSAGE, ROLLBACK_MESSAGE or UNKNOW.
        from_check: the broker had asked.
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
    """One record as text; separators inside a field become blanks, which Java lets break the record."""
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
    """All records of a trace message; kinds that are not known here (5.x: Recall) are left out.

    Raises:
        TraceError: a record that is cut short, or has no number where one belongs.
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
        raise TraceError(f"a {name} record holds no number where one belongs") from None
    return kind(*typed)


def _value(field: str, text: str) -> Any:
    if field in _NUMBERS:
        return int(text)
    return text == "true" if field in _FLAGS else text


def trace_keys(record: TraceRecord) -> list[str]:
    """The keys under which a record is found: the message's id, and its own keys."""
    return [record.msg_id] if record.keys == "null" else [record.msg_id, *record.keys.split()]
