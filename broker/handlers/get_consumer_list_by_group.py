"""GET_CONSUMER_LIST_BY_GROUP (38): return the client ids of a group's consumers.

Kept from 4.9.4 ``ConsumerManageProcessor#getConsumerListByGroup``: a group without consumers fails with 1.
Changed and refused: nothing.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.client import GetConsumerListByGroupRequestHeader
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.GET_CONSUMER_LIST_BY_GROUP


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    header = request.decode_header(GetConsumerListByGroupRequestHeader)
    group = context.clients.consumers.find(header.consumer_group)
    if group is None:
        raise RequestError(ResponseCode.SYSTEM_ERROR, f"no consumer for this group, {header.consumer_group}")
    return RemotingCommand(ResponseCode.SUCCESS, body=group.ids_body(request.serialize_type))
