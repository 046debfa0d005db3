"""SEND_BATCH_MESSAGE (320): store several messages of one topic, all or none.

Kept from 4.9.4 ``SendMessageProcessor#asyncSendBatchMessage``: each message gets its own record and id. A
batch to a retry topic fails with MESSAGE_ILLEGAL (13).
Changed: a message's own property wins over the batch's property of the same name. The request is a batch even
without the header's flag.
Refused with MESSAGE_ILLEGAL (13): half messages, DELAY levels, inner batches (5.x), a body whose lengths do
not add up, an empty batch.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.handlers.shared.send_request import answer_send
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.send import SendMessageRequestHeaderV2
from rewindmq.protocol.remoting.connection import Connection, Reply

CODE: Final = RequestCode.SEND_BATCH_MESSAGE


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> Reply:
    return answer_send(context, connection, request, SendMessageRequestHeaderV2, is_batch=True)
