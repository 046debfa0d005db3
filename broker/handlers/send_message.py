"""SEND_MESSAGE (10): store one message; the header has long field names.

Kept from 4.9.4 ``SendMessageProcessor``: the order of the checks; the creation of topics from TBW102; the
broker removes the property WAIT and adds CLUSTER; a late flush gives FLUSH_DISK_TIMEOUT (10); ``batch`` =
true makes the request a SEND_BATCH_MESSAGE (320). Kept from 5.3.3 under v53: WAIT stays. The broker adds
MSG_REGION, TRACE_ON and, if it is missing, UNIQ_KEY; the response has the UNIQ_KEY.
Changed: the message is in the ConsumeQueue before the response. The broker stores a message without body;
5.3.3 fails. For half and delayed messages, see ``transaction.half`` and ``delay.hook``.
Refused with MESSAGE_ILLEGAL (13): inner batches (5.x); transaction bits without TRAN_MSG=true (v49, v53).
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
