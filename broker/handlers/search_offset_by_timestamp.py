"""29 SEARCH_OFFSET_BY_TIMESTAMP: the offset of the message stored at a time.

Kept (docs/spec/broker.md B.10): the nearest message up to 5.1.0, ``boundaryType`` LOWER or UPPER under v53; 0
for an empty or unknown queue. Changed and refused: nothing.
"""

from __future__ import annotations

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.store.model import Boundary
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.offset import SearchOffsetRequestHeader, SearchOffsetResponseHeader
from rewindmq.protocol.remoting.connection import Connection


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    header = request.decode_header(SearchOffsetRequestHeader)
    # Whatever is not UPPER is LOWER, as BoundaryType#getType reads it.
    is_upper = (header.boundary_type or "").lower() == Boundary.UPPER.value
    offset = context.store.search_offset(
        header.topic,
        header.queue_id,
        header.timestamp,
        Boundary.UPPER if is_upper else Boundary.LOWER,
        context.rules.search_mode,
    )
    return RemotingCommand(ResponseCode.SUCCESS, SearchOffsetResponseHeader(offset))
