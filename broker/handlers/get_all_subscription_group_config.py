"""GET_ALL_SUBSCRIPTIONGROUP_CONFIG (201): return every consumer group's settings.

Kept from 4.9.4 ``AdminBrokerProcessor#getAllSubscriptionGroup``: the response has the groups and the data
version of their table.
Changed and refused: nothing.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.remoting.connection import Connection, Reply

CODE: Final = RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> Reply:
    return context.large_responses.reply(request, len(context.tables.groups), context.tables.groups.table)
