"""14 QUERY_CONSUMER_OFFSET: where a group stands in a queue.

Kept (``behaviour.md`` B.9; ``ConsumerManageProcessor`` of the profile's release): without a stored offset, 0
while the queue's first message is there and still in memory, else 22. Changed and refused: nothing.
"""

from __future__ import annotations

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.offset import (
    QueryConsumerOffsetRequestHeader,
    QueryConsumerOffsetResponseHeader,
)
from rewindmq.protocol.remoting.connection import Connection


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    header = request.decode_header(QueryConsumerOffsetRequestHeader)
    offset = context.offsets.query(header.consumer_group, header.topic, header.queue_id)
    if offset < 0:
        offset = _offset_of_new_group(context, header)
    return RemotingCommand(ResponseCode.SUCCESS, QueryConsumerOffsetResponseHeader(offset))


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
