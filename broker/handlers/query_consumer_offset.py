"""14 QUERY_CONSUMER_OFFSET: where a group stands in a queue.

Kept (docs/spec/broker.md B.9; ``ConsumerManageProcessor`` of the profile's release): without a stored offset,
0 while the queue's first message is there and still in memory, else 22; while a mark of a server reset waits,
its offset (docs/spec/reset.md D.9). Changed: after a fenced reset the answer has its epoch, and the
connection may go on from there; where the disk fails, the connection is closed, since clients of 4.x take any
refusal for "no offset" and may go on at the end. Refused: nothing.
"""

from __future__ import annotations

import logging

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.offset import (
    QueryConsumerOffsetRequestHeader,
    QueryConsumerOffsetResponseHeader,
)
from rewindmq.protocol.points import Point
from rewindmq.protocol.remoting.connection import Connection

_log = logging.getLogger(__name__)


def handle(
    context: BrokerContext, connection: Connection, request: RemotingCommand
) -> RemotingCommand | None:
    header = request.decode_header(QueryConsumerOffsetRequestHeader)
    queue = header.consumer_group, header.topic, header.queue_id
    offset, epoch = record = context.offsets.record(*queue)
    marked = context.marks.find(*queue)
    if marked is not None:
        offset = marked
    elif epoch:
        context.fencing.on_query(connection, queue, record)
    elif offset < 0:
        try:
            offset = _offset_of_new_group(context, header)
        except OSError as error:
            _log.error("offset of group %s not read: %s", header.consumer_group, error)
            connection.close("its request failed on the disk")
            return None
    if context.runtime.probe is not None:
        details = {
            "group": header.consumer_group,
            "topic": header.topic,
            "queue_id": header.queue_id,
            "offset": offset,
            "epoch": epoch,
            "client": connection.remote_address,
        }
        context.runtime.probe(Point.OFFSET_QUERIED, details)
    return RemotingCommand(ResponseCode.SUCCESS, QueryConsumerOffsetResponseHeader(offset, epoch or None))


def _offset_of_new_group(context: BrokerContext, header: QueryConsumerOffsetRequestHeader) -> int:
    rules = context.rules
    if rules.set_zero_if_not_found and header.set_zero_if_not_found is False:
        raise RequestError(
            ResponseCode.QUERY_NOT_FOUND, "Not found, do not set to zero, maybe this group boot first"
        )
    store, topic, queue_id = context.store, header.topic, header.queue_id
    is_present = store.max_offset(topic, queue_id) > 0
    if (
        store.min_offset(topic, queue_id) <= 0
        and (is_present or rules.absent_entry_is_cached)
        and not store.is_cold(topic, queue_id, 0)
    ):
        return 0
    raise RequestError(
        ResponseCode.QUERY_NOT_FOUND,
        "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first",
    )
