"""SEND_REPLY_MESSAGE_V2 (325): push a reply to the client that sent the request, as Java clients send it.

The header has one-letter field names. Kept, changed and refused: as for SEND_REPLY_MESSAGE (324), see
``send_reply_message``.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.handlers.shared.reply_request import answer_reply
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.send import SendMessageRequestHeaderV2
from rewindmq.protocol.remoting.connection import Connection, Reply

CODE: Final = RequestCode.SEND_REPLY_MESSAGE_V2


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> Reply:
    return answer_reply(context, connection, request, SendMessageRequestHeaderV2)
