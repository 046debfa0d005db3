"""ACK_MESSAGE (200051): a group has consumed a message that it popped; v53 only.

Kept from 5.5.1 ``AckMessageProcessor``: the checks of topic, queue and offset. Whether the handle is right is
not checked: an ack of another group or POP, a second one, and one after the revival succeed without effect. A
late ack does not move the group's offset. An ack of an orderly POP moves it to the first open message:
docs/spec/pop.md 10. Changed: nothing is done for an unknown group, another broker's name, or a revive queue
that is not read. A record that cannot be stored fails the request; RocketMQ only logs it. Refused with
SERVICE_NOT_AVAILABLE (14): an ack at a slave, where RocketMQ ignores it. Refused with 29: ``liteTopic``.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.handlers.shared.pop_consumption import pop_consumption
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.pop import AckMessageRequestHeader
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.ACK_MESSAGE


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    header = request.decode_header(AckMessageRequestHeader)
    pop_consumption(context).acknowledger.acknowledge(connection, header)
    return RemotingCommand(ResponseCode.SUCCESS)
