"""Decodes a reply and hands it to its sender, for SEND_REPLY_MESSAGE (324) and its V2 (325)."""

from __future__ import annotations

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.send import SendMessageRequestHeader
from rewindmq.protocol.remoting.connection import Connection, Reply


def answer_reply(
    context: BrokerContext,
    connection: Connection,
    request: RemotingCommand,
    header_type: type[SendMessageRequestHeader],
) -> Reply:
    """Push a reply to its requester.

    Args:
        header_type: the header class, which decides between long and short field names.
    """
    try:
        header = request.decode_header(header_type)
    except RequestError as error:
        return context.sends.appender.answers.refused(error)
    return context.sends.replies.send(connection, request, header)
