"""GET_CONSUMER_RUNNING_INFO (307): return what one consumer reports about itself.

Kept from 4.9.4 ``AdminBrokerProcessor#getConsumerRunningInfo``: the broker forwards the request to the
client, and the client's response to the sender, both unchanged. The request fails with 1 if the client is not
connected or older than 3.1.8, and with CONSUME_MSG_TIMEOUT (207) after 10 s.
Changed: the broker uses the client's newest connection. It translates a response whose serialization type
differs from the request's.
Refused with 1: a response of the client that does not decode.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.handlers.shared.client_calls import find_client, forward
from rewindmq.protocol.body.running_info import ConsumerRunningInfo
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.client import GetConsumerRunningInfoRequestHeader
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.GET_CONSUMER_RUNNING_INFO


def handle(
    context: BrokerContext, connection: Connection, request: RemotingCommand
) -> Awaitable[RemotingCommand]:
    header = request.decode_header(GetConsumerRunningInfoRequestHeader)
    channel = find_client(context, header.consumer_group, header.client_id)
    return forward(channel, header.consumer_group, request, ConsumerRunningInfo)
