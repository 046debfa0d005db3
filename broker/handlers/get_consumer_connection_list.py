"""GET_CONSUMER_CONNECTION_LIST (203): return the consumers and the subscriptions of a group.

Kept from 4.9.4 ``AdminBrokerProcessor#getConsumerConnectionList``: a group without consumers fails with
CONSUMER_NOT_ONLINE (206).
Changed and refused: nothing.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.body.connection import ConsumerConnection
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.admin import GetConsumerConnectionListRequestHeader
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.GET_CONSUMER_CONNECTION_LIST


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    name = request.decode_header(GetConsumerConnectionListRequestHeader).consumer_group
    group = context.clients.consumers.find(name)
    if group is None:
        raise RequestError(ResponseCode.CONSUMER_NOT_ONLINE, f"the consumer group[{name}] not online")
    body = ConsumerConnection(
        [channel.described() for channel in group.channels.values()],
        dict(group.subscriptions),
        group.consume_type,
        group.message_model,
        group.consume_from_where,
    )
    return RemotingCommand(ResponseCode.SUCCESS, body=body)
