"""GET_MIN_OFFSET (31): return the offset of a queue's first retained message.

Kept from 4.9.4 ``AdminBrokerProcessor#getMinOffset``: 0 for an empty or unknown queue.
Changed and refused: nothing.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.offset import GetMinOffsetRequestHeader, GetMinOffsetResponseHeader
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.GET_MIN_OFFSET


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    header = request.decode_header(GetMinOffsetRequestHeader)
    offset = context.store.min_offset(header.topic, header.queue_id)
    return RemotingCommand(ResponseCode.SUCCESS, GetMinOffsetResponseHeader(offset))
