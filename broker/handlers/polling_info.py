"""POLLING_INFO (200055): return how many POPs of a group wait for a queue, or for all queues; v53 only.

Kept from 5.5.1 ``PollingInfoProcessor``: the order of the checks; POPs for all queues (-1) and for one queue
are counted apart. Refused: nothing.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.handlers.shared.pop_consumption import pop_consumption
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.pop import PollingInfoRequestHeader
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.POLLING_INFO


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    header = request.decode_header(PollingInfoRequestHeader)
    return RemotingCommand(
        ResponseCode.SUCCESS, pop_consumption(context).peeker.polling_info(connection, header)
    )
