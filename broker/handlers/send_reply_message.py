"""SEND_REPLY_MESSAGE (324): push a reply to the client that sent the request; long field names.

Kept from 4.9.7 and 5.3.3 ``ReplyMessageProcessor``: the checks of a send. The broker pushes the reply to the
producer whose client id is in REPLY_TO_CLIENT (PUSH_REPLY_MESSAGE_TO_CLIENT, 326), with PUSH_REPLY_TIME, and
waits 10 s for its answer. The request fails with 1 and RocketMQ's remark if the property is missing, or the
client is not connected, does not answer or refuses. If ``storeReplyMessageEnable`` is true, the broker stores
the reply as well, whether or not the push succeeded; a failure to store it is only logged. Without a store,
the message id is 0. Kept from 5.3.3: replies get MSG_REGION and TRACE_ON. Kept from 4.2.0 under v42: 3.
Changed: the response waits for the requester, but not for the disk or a slave. A stored reply keeps the flags
of its compression. The newest of several connections with the client id gets the reply. A client that leaves
one producer group stays reachable through its other groups.
Refused with SYSTEM_BUSY (2): more replies that wait for their requesters than
``replyThreadPoolQueueCapacity``, or the share of a connection, allows.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.handlers.shared.reply_request import answer_reply
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.send import SendMessageRequestHeader
from rewindmq.protocol.remoting.connection import Connection, Reply

CODE: Final = RequestCode.SEND_REPLY_MESSAGE


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> Reply:
    return answer_reply(context, connection, request, SendMessageRequestHeader)
