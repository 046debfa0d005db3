"""310 SEND_MESSAGE_V2: store one message; header with one-letter names, as Java clients send it.

Kept, changed and refused: as 10, see ``send_message``.
"""

from __future__ import annotations

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.send import SendMessageRequestHeaderV2
from rewindmq.protocol.remoting.connection import Connection


def handle(
    context: BrokerContext, connection: Connection, request: RemotingCommand
) -> RemotingCommand | None:
    try:
        header = request.decode_header(SendMessageRequestHeaderV2)
    except RequestError as error:
        return context.sender.refuse(error)
    sender = context.batch_sender if header.batch else context.sender
    return sender.send(connection, request, header)
