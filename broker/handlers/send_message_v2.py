"""SEND_MESSAGE_V2 (310): store one message; the header has one-letter field names, as Java clients send it.

Kept, changed and refused: as for SEND_MESSAGE (10), see ``send_message``.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.handlers.shared.send_request import answer_send
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.send import SendMessageRequestHeaderV2
from rewindmq.protocol.remoting.connection import Connection, Reply

CODE: Final = RequestCode.SEND_MESSAGE_V2


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> Reply:
    return answer_send(context, connection, request, SendMessageRequestHeaderV2)
