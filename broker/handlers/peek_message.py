"""PEEK_MESSAGE (200052): return messages that a group would pop next, without popping them; v53 only.

Kept from 5.5.1 ``PeekMessageProcessor``: the order of the checks; the retry topic is read first one time in
five; ``restNum`` counts what the group has not popped. Without messages the request fails with PULL_NOT_FOUND
(19). Nothing is filtered, and no offset moves. Changed: a peek returns at most as many messages as a pull. No
mark of a reset is taken, as in RocketMQ. Refused: nothing.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.handlers.shared.pop_consumption import pop_consumption
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.pop import PeekMessageRequestHeader
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.PEEK_MESSAGE


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    header = request.decode_header(PeekMessageRequestHeader)
    return pop_consumption(context).peeker.peek(connection, header)
