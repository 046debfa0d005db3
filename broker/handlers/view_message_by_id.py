"""VIEW_MESSAGE_BY_ID (33): return the record at a commit-log position.

Kept from 4.9.4 ``QueryMessageProcessor#viewMessageById``: the response is the raw record. A position without
a record fails with 1.
Changed: a position inside a record also fails with 1; RocketMQ reads the bytes there as a length, and sends
as many bytes.
Refused: nothing.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.message import ViewMessageRequestHeader
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.VIEW_MESSAGE_BY_ID


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    header = request.decode_header(ViewMessageRequestHeader)
    record = context.store.look_message(header.offset)
    if record is None:
        raise RequestError(ResponseCode.SYSTEM_ERROR, f"can not find message by the offset, {header.offset}")
    return RemotingCommand(ResponseCode.SUCCESS, body=record)
