"""307 GET_CONSUMER_RUNNING_INFO: what one consumer is doing, asked of itself.

Kept from 4.9.4 ``AdminBrokerProcessor#getConsumerRunningInfo``: the request goes on to the client as it came,
its answer comes back as it is; 1 for a client that is not connected or older than 3.1.8, 207 after 10 s.
Changed: asked on the client's newest connection; an answer in another codec than the asker's is translated.
Refused: an answer that cannot be read, with 1.
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
