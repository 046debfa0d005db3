"""203 GET_CONSUMER_CONNECTION_LIST: a group's members and subscriptions.

Kept from 4.9.4 ``AdminBrokerProcessor#getConsumerConnectionList``: 206 for a group without members.
Changed and refused: nothing.
"""

from __future__ import annotations

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.body import connection as bodies
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.admin import GetConsumerConnectionListRequestHeader
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.version import LanguageCode


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    name = request.decode_header(GetConsumerConnectionListRequestHeader).consumer_group
    group = context.consumers.find(name)
    if group is None:
        raise RequestError(ResponseCode.CONSUMER_NOT_ONLINE, f"the consumer group[{name}] not online")
    members = [
        bodies.Connection(
            channel.client_id,
            channel.connection.remote_address,
            LanguageCode.parse(channel.language).name,
            channel.version,
        )
        for channel in group.channels.values()
    ]
    body = bodies.ConsumerConnection(
        members,
        dict(group.subscriptions),
        group.consume_type,
        group.message_model,
        group.consume_from_where,
    )
    return RemotingCommand(ResponseCode.SUCCESS, body=body)
