"""QUERY_CONSUMER_OFFSET (14): return a group's stored offset in a queue.

Kept (docs/spec/broker.md B.9; ``ConsumerManageProcessor`` of the profile's release): without a stored offset
the response is 0 if the queue's first message is retained and still in memory; otherwise the request fails
with QUERY_NOT_FOUND (22). Until a pull consumes the mark of a server-side reset, the response is the mark's
offset (docs/spec/reset.md D.9).
Changed: after a fenced reset the response has the queue's epoch, and the connection may commit in it. If the
disk fails, the broker closes the connection: 4.x clients treat any error response as "no offset", and might
start at the end of the queue.
Refused: nothing.
"""

from __future__ import annotations

import logging
from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.offset import (
    QueryConsumerOffsetRequestHeader,
    QueryConsumerOffsetResponseHeader,
)
from rewindmq.protocol.points import Point
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.QUERY_CONSUMER_OFFSET

_log = logging.getLogger(__name__)


def handle(
    context: BrokerContext, connection: Connection, request: RemotingCommand
) -> RemotingCommand | None:
    header = request.decode_header(QueryConsumerOffsetRequestHeader)
    queue = header.consumer_group, header.topic, header.queue_id
    context.offsets.rewinds.on_query(connection, *queue)
    offset, epoch = record = context.offsets.table.record(*queue)
    marked = context.offsets.marks.find(*queue)
    if marked is not None:
        offset = marked
    elif epoch:
        context.offsets.fencing.on_query(connection, queue, record)
    elif offset < 0:
        try:
            offset = _offset_of_new_group(context, header)
        except OSError as error:
            _log.error("can not read the offset of group %s: %s", header.consumer_group, error)
            connection.close("the broker could not read the offset from its disk")
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
    profile = context.profile
    if profile.set_zero_if_not_found and header.set_zero_if_not_found is False:
        raise RequestError(
            ResponseCode.QUERY_NOT_FOUND, "Not found, do not set to zero, maybe this group boot first"
        )
    store, topic, queue_id = context.store, header.topic, header.queue_id
    is_present = store.max_offset(topic, queue_id) > 0
    if (
        store.min_offset(topic, queue_id) <= 0
        and (is_present or profile.absent_entry_is_cached)
        and not store.is_cold(topic, queue_id, 0)
    ):
        return 0
    raise RequestError(
        ResponseCode.QUERY_NOT_FOUND,
        "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first",
    )
