"""GET_MAX_OFFSET (30): return the offset after a queue's last message.

Kept from 4.9.4 ``AdminBrokerProcessor#getMaxOffset``: 0 for an empty or unknown queue.
Changed and refused: nothing. ``committed`` (5.x) has no effect, because every message in a queue is committed
here.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.offset import GetMaxOffsetRequestHeader, GetMaxOffsetResponseHeader
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.GET_MAX_OFFSET


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    header = request.decode_header(GetMaxOffsetRequestHeader)
    offset = context.store.max_offset(header.topic, header.queue_id)
    return RemotingCommand(ResponseCode.SUCCESS, GetMaxOffsetResponseHeader(offset))
