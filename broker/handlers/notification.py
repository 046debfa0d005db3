"""NOTIFICATION (200054): answer when a group has a message to pop, or when the poll time is over; v53 only.

Kept from 5.5.1 ``NotificationProcessor``: the order of the checks; the request is suspended until a message
arrives or its poll time is over. The tags of the next 32 messages are compared; in a queue with 64 messages
or more, and for SQL92, only their number counts. Changed: a lite consumer (``isLiteConsumer``) is told at
once that there is no message. Refused: nothing.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.handlers.shared.pop_consumption import pop_consumption
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.pop import NotificationRequestHeader
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.NOTIFICATION


def handle(
    context: BrokerContext, connection: Connection, request: RemotingCommand
) -> RemotingCommand | None:
    pop = pop_consumption(context)
    header = request.decode_header(NotificationRequestHeader)
    header.born_time = pop.born_times.of(header.born_time)
    return pop.peeker.notify(connection, request, header)
