"""106 GET_BROKER_CLUSTER_INFO: every broker with its addresses, every cluster with its brokers.

Kept: the two tables as they are, also when both are empty.
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
