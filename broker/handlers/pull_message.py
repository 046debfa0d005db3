"""11 PULL_MESSAGE: messages of one queue from an offset on, held when there are none yet.

Kept from 4.9.4 ``PullMessageProcessor``: order of the gates, status to code, the four reply fields on 0, 19,
20 and 21, the piggy-backed commit on the first pass only, the OFFSET_MOVED_EVENT message (not under v53);
from 5.3.3 that the first pull after a server reset is answered 21 (docs/spec/reset.md D.9). Changed: pulls
woken by an arrival run after all messages of that read are stored; a pull of another epoch than the queue's
is answered 21, its commit fenced; a bad SQL92 expression in the pull itself is refused with 23. Refused:
SQL92 filters with 1 unless enablePropertyFilter is on; class filters with 1; ``maxMsgBytes`` (5.x) is not
looked at.
"""

from __future__ import annotations

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.pull import PullMessageRequestHeader
from rewindmq.protocol.remoting.connection import Connection


def handle(
    context: BrokerContext, connection: Connection, request: RemotingCommand
) -> RemotingCommand | None:
    return context.puller.pull(connection, request, request.decode_header(PullMessageRequestHeader))
