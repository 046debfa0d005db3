"""Creates the reply to a request (RocketMQ 4.9.7 ``MessageUtil#createReplyMessage``)."""

from __future__ import annotations

from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.message import Message, MessageExt
from rewindmq.protocol.message.properties import (
    CLUSTER,
    CORRELATION_ID,
    MSG_TYPE,
    REPLY_MESSAGE_FLAG,
    REPLY_TO_CLIENT,
    TTL,
)
from rewindmq.protocol.names import reply_topic


def create_reply_message(request: MessageExt, body: bytes | bytearray | memoryview) -> Message:
    """Return the reply to a request, for the ``send`` of any producer.

    The broker passes it on to the client that waits in ``Producer.request``. The send fails with a
    ``ResponseError`` if that client is not connected. It succeeds if the client no longer waits.

    Args:
        request: as the consumer received it.
        body: as in ``Message``.

    Raises:
        ClientError: the message is not a request, or ``body`` has another type.
    """
    properties = request.properties
    for name in (CLUSTER, REPLY_TO_CLIENT, CORRELATION_ID):
        if not properties.get(name):
            raise ClientError(
                f"create reply message fail, requestMessage error, property[{name}] is null: the message was"
                " not sent with request()"
            )
    reply = Message(reply_topic(properties[CLUSTER]), body)
    reply.properties[MSG_TYPE] = REPLY_MESSAGE_FLAG
    for name in (CORRELATION_ID, REPLY_TO_CLIENT, TTL):
        if name in properties:
            reply.properties[name] = properties[name]
    return reply
