"""ADD_WRITE_PERM_OF_BROKER (327): allow producers to send to a broker again.

Kept: the permission becomes 6 (read and write) whatever it was.
Refused with 3: the request under v42, as 4.2.0 does not know it.
"""

from __future__ import annotations

from typing import Final

from rewindmq.namesrv.context import NamesrvContext
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.namesrv import (
    AddWritePermOfBrokerRequestHeader,
    AddWritePermOfBrokerResponseHeader,
)
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.ADD_WRITE_PERM_OF_BROKER


def handle(context: NamesrvContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    header = request.decode_header(AddWritePermOfBrokerRequestHeader)
    count = context.routes.set_write_permission(header.broker_name, writable=True)
    return RemotingCommand(ResponseCode.SUCCESS, AddWritePermOfBrokerResponseHeader(add_topic_count=count))
