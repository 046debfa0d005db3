"""SEND_MESSAGE (10): store one message; the header has long field names.

Kept from 4.9.4 ``SendMessageProcessor``: the order of the checks; auto-creation from TBW102; WAIT is removed
and CLUSTER added; 10 if the disk is late; ``batch`` = true makes the request a SEND_BATCH_MESSAGE (320). Kept
from 5.3.3: WAIT stays. The broker adds MSG_REGION and TRACE_ON, and a UNIQ_KEY if there is none, which the
response names.
Changed: the message is in the ConsumeQueue before the response. The broker stores a message without body;
5.3.3 fails. Half messages and delays: ``transaction.half``, ``delay.hook``.
Refused with 13: inner batches (5.x); transaction bits without TRAN_MSG=true (v49, v53).
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
