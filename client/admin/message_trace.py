"""Reads a message's trace (RocketMQ 4.9.4 ``TraceView``, ``QueryMsgTraceByIdSubCommand``)."""

from __future__ import annotations

from typing import NamedTuple

from rewindmq.client.admin.messages import MessageAdmin
from rewindmq.client.msg_trace.records import (
    DEFAULT_TRACE_TOPIC,
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


class TraceAdmin(MessageAdmin):
    """Reads the traces of messages from a trace topic."""

    async def query_message_trace(self, message_id: str, topic: str = DEFAULT_TRACE_TOPIC) -> list[TraceLine]:
        """Return the traced sends, listener calls and transaction ends of a message, the oldest first.

        Raises:
            ResponseError: TOPIC_NOT_EXIST (17) if there is no trace topic; NO_MESSAGE (208) if it has no
                trace of the message.
        """
        found = await self.query_message(topic, message_id)
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
                cost, status = (
                    (0, _UNFINISHED) if after is None else (after.cost_time, _status(after.success))
                )
                lines.append(TraceLine("Sub", record.group, host, record.timestamp, cost, status))
            elif isinstance(record, EndTransaction):
                lines.append(
                    TraceLine("EndTransaction", record.group, host, record.timestamp, 0, record.state)
                )
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
