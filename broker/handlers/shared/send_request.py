"""From a send request to its sender, the same for every code that sends."""

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
    """Store what the request carries; None when the answer has to wait for the disk.

    Args:
        header_type: the names the header's fields come under.
        is_batch: the code says so; the header's ``batch`` may say so too.
    """
    try:
        header = request.decode_header(header_type)
    except RequestError as error:
        return context.answers.refused(error)
    if is_batch or header.batch:
        return context.batch_sender.send(connection, request, header)
    return context.sender.send(connection, request, header)
