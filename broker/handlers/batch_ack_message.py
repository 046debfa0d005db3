"""BATCH_ACK_MESSAGE (200151): a group has consumed messages of several POPs; v53 only.

Kept from 5.5.1 ``AckMessageProcessor``: without acks the request fails with NO_MESSAGE (208); offsets outside
the queue are ignored, and an unknown topic with them; the acks before a malformed one are stored. Changed: as
ACK_MESSAGE (200051). Refused with 1: more than 128 messages in one entry, more than 256 entries.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.handlers.shared.pop_consumption import pop_consumption
from rewindmq.broker.limits import MAX_BATCH_ACK_ENTRIES
from rewindmq.protocol.body.batch_ack import BatchAckMessageRequestBody
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.BATCH_ACK_MESSAGE


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    body = decode_body(request, BatchAckMessageRequestBody) if request.body else None
    if body is None or not body.acks:
        raise RequestError(ResponseCode.NO_MESSAGE, "the request acknowledges nothing")
    if len(body.acks) > MAX_BATCH_ACK_ENTRIES:
        raise RequestError(
            ResponseCode.SYSTEM_ERROR,
            f"the request acknowledges {len(body.acks)} POPs: send at most {MAX_BATCH_ACK_ENTRIES} at once",
        )
    acknowledger = pop_consumption(context).acknowledger
    for batch in body.acks:
        acknowledger.acknowledge_batch(connection, body.broker_name, batch)
    return RemotingCommand(ResponseCode.SUCCESS)
