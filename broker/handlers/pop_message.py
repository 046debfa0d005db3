"""POP_MESSAGE (200050): lend a group messages of a topic for an invisible time; v53 only.

Kept from 5.5.1 ``PopMessageProcessor``: the order of the checks; the fields of the response and their texts;
the offset moves when messages are delivered; the retry topic is read first with ``popFromRetryProbability``;
a group without an offset begins as ``initMode`` and ``initPopOffsetByCheckMsgInMem`` say; the first POP after
a server-side reset takes its mark; no reset wakes a suspended POP; SQL92 works without
``enablePropertyFilter``. Without messages the POP is suspended until its poll time is over; then it fails
with POLLING_TIMEOUT (210). With ``order``, a queue is blocked while messages of it are in flight:
docs/spec/pop.md 10.
Changed: checkpoint and offset are stored in one step, so a reset in between cannot be lost. The response does
not wait for the disk under SYNC_FLUSH. A checkpoint that cannot be stored fails the POP; RocketMQ delivers
the messages without it. A message wakes the first suspended POP whose filter matches. Refused with
SERVICE_NOT_AVAILABLE (14): a POP at a slave, where RocketMQ delivers messages without a checkpoint. Refused
with 1: an attempt id of more than 1,024 characters, too many queues that are popped in order.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.handlers.shared.pop_consumption import pop_consumption
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.pop import PopMessageRequestHeader
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.POP_MESSAGE


def handle(
    context: BrokerContext, connection: Connection, request: RemotingCommand
) -> RemotingCommand | None:
    header = request.decode_header(PopMessageRequestHeader)
    return pop_consumption(context).popper.pop(connection, request, header)
