"""GET_ALL_TOPIC_CONFIG (21): return every topic and the table's data version, for a slave to copy.

Kept from 4.9.4 ``AdminBrokerProcessor#getAllTopicConfig``: the broker's own permission does not limit the
topics'.
Changed and refused: nothing.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.remoting.connection import Connection, Reply

CODE: Final = RequestCode.GET_ALL_TOPIC_CONFIG


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> Reply:
    return context.large_responses.reply(request, len(context.tables.topics), context.tables.topics.table)
