"""37 END_TRANSACTION: a producer says what became of its transaction.

Kept from 4.9.4 ``EndTransactionProcessor``: commit writes the message under its own topic with a new offset
and then an op record, rollback the op record alone; UNKNOW is not even answered, any other number is answered
1 (``EndTransactionRequestHeader#checkFields``); codes and remarks; a second commit of the same half message
writes it again. From 5.3.3 under v53: 604 after the message's own immunity, unless the producer was asked.
From 4.2.0 under v42: the second record of a prepared one, in the same topic. Changed: a position where no
half message starts is answered 1 ``Find prepared transaction message failed``, where RocketMQ takes
whatever it finds there; v53 writes each op record at once and not up to 3 s later, so that a crash in between
asks nobody again.
Refused: nothing.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.message import EndTransactionRequestHeader
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.END_TRANSACTION


def handle(
    context: BrokerContext, connection: Connection, request: RemotingCommand
) -> RemotingCommand | None:
    header = request.decode_header(EndTransactionRequestHeader)
    return RemotingCommand(ResponseCode.SUCCESS) if context.transaction_ends.end(header) else None
