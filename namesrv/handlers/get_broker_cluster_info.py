"""GET_BROKER_CLUSTER_INFO (106): return every broker's addresses and every cluster's brokers.

Kept: the response has both tables, even if they are empty.
"""

from __future__ import annotations

from typing import Final

from rewindmq.namesrv.context import NamesrvContext
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.GET_BROKER_CLUSTER_INFO


def handle(context: NamesrvContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    return RemotingCommand(ResponseCode.SUCCESS, body=context.routes.cluster_info())
