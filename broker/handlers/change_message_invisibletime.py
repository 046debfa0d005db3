"""CHANGE_MESSAGE_INVISIBLETIME (200053): let a popped message be visible again at another time; v53 only.

Kept from 5.5.1 ``ChangeInvisibleTimeProcessor``: the message gets a checkpoint of its own, and its old one an
ack; the response has the parts of the new handle. The old handle stays valid for further changes, each of
which opens a checkpoint. ``suspend`` keeps the number of attempts. Changed: the new checkpoint never has the
name of the old one; in RocketMQ it has if both are opened in one millisecond, and the message is lost.
Nothing is stored for a handle that cannot be this broker's. If only the ack cannot be stored, the request
succeeds. The change of a message of an orderly POP is kept in the queue's order info, and the POP time stays:
docs/spec/pop.md 10. Refused with SERVICE_NOT_AVAILABLE (14): a request to a slave. Refused with 29:
``liteTopic``.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.handlers.shared.pop_consumption import pop_consumption
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.pop import ChangeInvisibleTimeRequestHeader
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.CHANGE_MESSAGE_INVISIBLETIME


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    header = request.decode_header(ChangeInvisibleTimeRequestHeader)
    answer = pop_consumption(context).acknowledger.change_invisible_time(connection, header)
    return RemotingCommand(ResponseCode.SUCCESS, answer)
