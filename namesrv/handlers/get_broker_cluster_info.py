"""GET_BROKER_CLUSTER_INFO (106): return every broker's addresses and every cluster's brokers.

Kept: the response has both tables, even if they are empty. Only v53 has ``enableActingMaster``.
"""

from __future__ import annotations

from typing import Final

from rewindmq.namesrv.context import NamesrvContext
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.remoting.connection import Connection, Reply

CODE: Final = RequestCode.GET_BROKER_CLUSTER_INFO


def handle(context: NamesrvContext, connection: Connection, request: RemotingCommand) -> Reply:
    routes = context.routes
    return context.large_responses.reply(request, routes.broker_ids, routes.cluster_info)
