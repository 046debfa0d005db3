"""CONSUME_MESSAGE_DIRECTLY (309): hand one message to the listener of one consumer, at once.

Kept from 4.9.4 ``AdminBrokerProcessor#consumeMessageDirectly``: the broker forwards the record that the
offset id names, with the broker's name, to the client. The group's offsets stay as they are. The request
fails with 1 if the client is not connected or older than 3.1.8. It fails with CONSUME_MSG_TIMEOUT (207) after
10 s, although the listener may still be running.
Changed: an id that names no record fails with 1 and a remark that says so; RocketMQ's remark is that of a
null pointer. The broker uses the client's newest connection. It translates a response whose serialization
type differs from the request's.
Refused with 1: a response of the client that does not decode.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.handlers.shared.client_calls import find_client, forward
from rewindmq.protocol.body.running_info import ConsumeMessageDirectlyResult
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.message import ConsumeMessageDirectlyResultRequestHeader
from rewindmq.protocol.message.message_id import parse_offset_message_id
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.CONSUME_MESSAGE_DIRECTLY


def handle(
    context: BrokerContext, connection: Connection, request: RemotingCommand
) -> Awaitable[RemotingCommand]:
    header = request.decode_header(ConsumeMessageDirectlyResultRequestHeader)
    _, position = parse_offset_message_id(header.msg_id or "")
    record = context.store.look_message(position)
    if record is None:
        raise RequestError(ResponseCode.SYSTEM_ERROR, f"can not find message by the offset, {position}")
    channel = find_client(context, header.consumer_group, header.client_id)
    return forward(
        channel,
        header.consumer_group,
        request,
        ConsumeMessageDirectlyResult,
        body=bytes(record),
        brokerName=context.config.broker_name,
    )
