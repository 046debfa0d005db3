"""GET_PRODUCER_CONNECTION_LIST (204): return the producers of a group.

Kept from 4.9.7 ``AdminBrokerProcessor#getProducerConnectionList``: a group without producers fails with 1.
Changed and refused: nothing.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.body.connection import ProducerConnection
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.admin import GetProducerConnectionListRequestHeader
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.GET_PRODUCER_CONNECTION_LIST


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    group = request.decode_header(GetProducerConnectionListRequestHeader).producer_group
    channels = context.clients.producers.channels(group)
    if not channels:
        raise RequestError(ResponseCode.SYSTEM_ERROR, f"the producer group[{group}] not exist")
    body = ProducerConnection([channel.described() for channel in channels])
    return RemotingCommand(ResponseCode.SUCCESS, body=body)
