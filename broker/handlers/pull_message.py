"""PULL_MESSAGE (11): return a queue's messages from an offset on; suspend the pull if there are none yet.

Kept from 4.9.4 ``PullMessageProcessor``: the order of the checks; the response code of each read status; the
four response fields with the codes 0, 19, 20 and 21; the OFFSET_MOVED_EVENT message (not under v53). The
broker stores the offset that a pull commits when the pull arrives, not again when a suspended pull wakes.
Kept from 5.3.3: the first pull after a server-side reset fails with PULL_OFFSET_MOVED (21)
(docs/spec/reset.md D.9).
Changed: messages that arrive in one read from the network wake suspended pulls after all of them are stored.
A pull of another epoch than the queue's fails with PULL_OFFSET_MOVED (21), and the broker refuses its commit.
A bad SQL92 expression in the pull itself fails with SUBSCRIPTION_PARSE_FAILED (23).
Refused with 1: SQL92 filters unless enablePropertyFilter is on; class filters. The broker ignores
``maxMsgBytes`` (5.x).
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.pull import PullMessageRequestHeader
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.PULL_MESSAGE


def handle(
    context: BrokerContext, connection: Connection, request: RemotingCommand
) -> RemotingCommand | None:
    return context.pulls.puller.pull(connection, request, request.decode_header(PullMessageRequestHeader))
