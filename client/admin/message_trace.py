"""Reads a message's trace (RocketMQ 4.9.4 ``TraceView``, ``QueryMsgTraceByIdSubCommand``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rewindmq.client.msg_trace.records import (
    EndTransaction,
    Pub,
    SubAfter,
    SubBefore,
    TraceError,
    TraceRecord,
    decode,
    trace_keys,
)
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.message import MessageExt

_UNFINISHED = "failed"
# Order of steps with the same timestamp: a send precedes the end of its transaction, and then the delivery.
_ORDER = ("Pub", "EndTransaction", "Sub")


class TraceLine(NamedTuple):
    """One step in the trace of a message: a send, a listener call, or the end of a transaction.

    Attributes:
        kind: Pub, Sub or EndTransaction.
        client_host: the host of the traced client, as the broker of the trace topic saw it.
        timestamp: ms; for a Sub, the start of the listener call.
        cost_time: ms; 0 for an EndTransaction.
        status: success or failed; for an EndTransaction, its state. A listener call without a recorded end
            counts as failed.
    """

    kind: str
    group: str
    client_host: str
    timestamp: int
    cost_time: int
    status: str


def trace_lines(found: Iterable[MessageExt], message_id: str) -> list[TraceLine]:
    """Return the steps of a message that messages of a trace topic record, the oldest first."""
    records = [(record, message) for message in found for record in _records(message, message_id)]
    afters = {record.request_id: record for record, _ in records if isinstance(record, SubAfter)}
    lines: list[TraceLine] = []
    for record, message in records:
        host = message.born_host.rpartition(":")[0]
        if isinstance(record, Pub):
            status = _status(record.success)
            lines.append(TraceLine("Pub", record.group, host, record.timestamp, record.cost_time, status))
        elif isinstance(record, SubBefore):
            after = afters.get(record.request_id)
            cost, status = (0, _UNFINISHED) if after is None else (after.cost_time, _status(after.success))
            lines.append(TraceLine("Sub", record.group, host, record.timestamp, cost, status))
        elif isinstance(record, EndTransaction):
            lines.append(TraceLine("EndTransaction", record.group, host, record.timestamp, 0, record.state))
    return sorted(lines, key=lambda line: (line.timestamp, _ORDER.index(line.kind)))


def _records(message: MessageExt, message_id: str) -> list[TraceRecord]:
    try:
        records = decode(message.body.decode("utf-8", "replace"))
    except (TraceError, ClientError):
        # Any producer may send other messages to the trace topic.
        return []
    return [record for record in records if message_id in trace_keys(record)]


def _status(success: bool) -> str:
    return "success" if success else _UNFINISHED
