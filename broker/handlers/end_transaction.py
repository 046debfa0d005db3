"""END_TRANSACTION (37): commit or roll back a producer's transaction.

Kept from 4.9.4 ``EndTransactionProcessor``:

- A commit writes the message to its own topic, with a new offset, and then an op record. A rollback writes
  the op record alone.
- The state "unknown" (0) gets no response. A number that is not a state fails with 1
  (``EndTransactionRequestHeader#checkFields``).
- A second commit of the same half message writes the message again.
- Codes and remarks are RocketMQ's.

Kept from 5.3.3 under v53: the request fails with ILLEGAL_OPERATION (604) after the immunity time that the
message itself sets, unless the request is the producer's response to a check. Kept from 4.2.0 under v42:
commit and rollback write a second record into the topic of the prepared message.
Changed: a position where no half message starts fails with 1 ``Find prepared transaction message failed``;
RocketMQ uses any record there. v53 writes each op record at once; RocketMQ waits up to 3 s, and after a crash
in that time it asks the producer again.
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
    return RemotingCommand(ResponseCode.SUCCESS) if context.transactions.ends.end(header) else None
