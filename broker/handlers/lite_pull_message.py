"""LITE_PULL_MESSAGE (361): the pull request of 5.x's lite pull consumers.

Kept from 5.3.3 ``PullMessageProcessor``: the broker handles it as PULL_MESSAGE (11), see ``pull_message``. It
fails with NO_PERMISSION (16) if ``litePullMessageEnable`` is false.
Refused: what PULL_MESSAGE refuses. Refused with 3: the request under v42 and v49, as by brokers before 5.0.0.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.pull import PullMessageRequestHeader
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.LITE_PULL_MESSAGE


def handle(
    context: BrokerContext, connection: Connection, request: RemotingCommand
) -> RemotingCommand | None:
    header = request.decode_header(PullMessageRequestHeader)
    config = context.config
    if not config.lite_pull_message_enable:
        host = config.broker_ip1 or config.bind_address
        raise RequestError(
            ResponseCode.NO_PERMISSION, f"the broker[{host}] for lite pull consumer is forbidden"
        )
    return context.pulls.puller.pull(connection, request, header)
