"""10 SEND_MESSAGE: store one message; header with long names.

Kept from 4.9.4 ``SendMessageProcessor``: order of the checks, auto-creation from TBW102, WAIT dropped and
CLUSTER added, answers 10 when the disk is late; ``batch`` = true makes it a 320. From 5.3.3: WAIT stays,
MSG_REGION and TRACE_ON are added, and a UNIQ_KEY where there is none, which the answer names. Changed: the
consume queue has the message before the answer; one without body is stored, at which 5.3.3 fails. Half
messages and delays: ``transaction/half``, ``delay/hook``. Refused with 13: inner batches (5.x);
transaction bits without TRAN_MSG=true (v49, v53).
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.handlers.shared.send_request import answer_send
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.send import SendMessageRequestHeader
from rewindmq.protocol.remoting.connection import Connection, Reply

CODE: Final = RequestCode.SEND_MESSAGE


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> Reply:
    return answer_send(context, connection, request, SendMessageRequestHeader)
