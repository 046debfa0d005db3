"""Decodes a send request and hands it to its sender, for every request code that sends."""

from __future__ import annotations

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.send import SendMessageRequestHeader
from rewindmq.protocol.remoting.connection import Connection, Reply


def answer_send(
    context: BrokerContext,
    connection: Connection,
    request: RemotingCommand,
    header_type: type[SendMessageRequestHeader],
    *,
    is_batch: bool = False,
) -> Reply:
    """Store the messages of a request; return None if the response waits for the disk or a slave.

    Args:
        header_type: the header class, which decides between long and short field names.
        is_batch: True for SEND_BATCH_MESSAGE (320); the header's ``batch`` flag has the same effect.
    """
    try:
        header = request.decode_header(header_type)
    except RequestError as error:
        return context.sends.appender.answers.refused(error)
    if is_batch or header.batch:
        return context.sends.batches.send(connection, request, header)
    return context.sends.single.send(connection, request, header)
