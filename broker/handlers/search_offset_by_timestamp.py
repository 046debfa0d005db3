"""SEARCH_OFFSET_BY_TIMESTAMP (29): return the offset of the message stored at a time.

Kept (docs/spec/broker.md B.10): v42 and v49 find the nearest message, as RocketMQ does up to 5.1.0; v53 obeys
``boundaryType`` (LOWER or UPPER). An empty or unknown queue gives 0.
Changed and refused: nothing.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.store.model import Boundary
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.offset import SearchOffsetRequestHeader, SearchOffsetResponseHeader
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.SEARCH_OFFSET_BY_TIMESTAMP


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    header = request.decode_header(SearchOffsetRequestHeader)
    # Every value except UPPER means LOWER, as in BoundaryType#getType.
    is_upper = (header.boundary_type or "").lower() == Boundary.UPPER.value
    offset = context.store.search_offset(
        header.topic,
        header.queue_id,
        header.timestamp,
        Boundary.UPPER if is_upper else Boundary.LOWER,
        context.profile.search_mode,
    )
    return RemotingCommand(ResponseCode.SUCCESS, SearchOffsetResponseHeader(offset))
