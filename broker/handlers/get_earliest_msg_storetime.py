"""GET_EARLIEST_MSG_STORETIME (32): return the store time of a queue's first retained message.

Kept from 4.9.4 ``AdminBrokerProcessor#getEarliestMsgStoretime``: -1 for an empty queue.
Changed and refused: nothing.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.offset import (
    GetEarliestMsgStoretimeRequestHeader,
    GetEarliestMsgStoretimeResponseHeader,
)
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.GET_EARLIEST_MSG_STORETIME


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    header = request.decode_header(GetEarliestMsgStoretimeRequestHeader)
    topic, queue_id, store = header.topic, header.queue_id, context.store
    timestamp = store.store_time(topic, queue_id, store.min_offset(topic, queue_id))
    return RemotingCommand(ResponseCode.SUCCESS, GetEarliestMsgStoretimeResponseHeader(timestamp))
