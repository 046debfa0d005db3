"""GET_SUBSCRIPTIONGROUP_CONFIG (352): return the settings of one consumer group.

Kept from 5.5.0 ``AdminBrokerProcessor#getSubscriptionGroup``: the broker creates an unknown group if it may
create groups. Otherwise the request fails with SUBSCRIPTION_GROUP_NOT_EXIST (26).
Refused with 3: the request under v42 and v49, as by brokers before 5.0.0.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.admin import GetSubscriptionGroupConfigRequestHeader
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    group = context.tables.groups.find(request.decode_header(GetSubscriptionGroupConfigRequestHeader).group)
    if group is None:
        raise RequestError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "No group in this broker")
    return RemotingCommand(ResponseCode.SUCCESS, body=group)
