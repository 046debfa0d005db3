"""WIPE_WRITE_PERM_OF_BROKER (205): stop producers from sending to a broker.

Kept: the response counts all topics of the broker, changed or not; 0 for an unknown broker. The broker's next
registration with a new data version undoes the change.
"""

from __future__ import annotations

from typing import Final

from rewindmq.namesrv.context import NamesrvContext
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.namesrv import (
    WipeWritePermOfBrokerRequestHeader,
    WipeWritePermOfBrokerResponseHeader,
)
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.WIPE_WRITE_PERM_OF_BROKER


def handle(context: NamesrvContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    header = request.decode_header(WipeWritePermOfBrokerRequestHeader)
    count = context.routes.set_write_permission(header.broker_name, writable=False)
    return RemotingCommand(ResponseCode.SUCCESS, WipeWritePermOfBrokerResponseHeader(wipe_topic_count=count))
