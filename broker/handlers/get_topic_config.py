"""GET_TOPIC_CONFIG (351): return the settings of one topic.

Kept from 5.5.0 ``AdminBrokerProcessor#getTopicConfig``: an unknown topic fails with TOPIC_NOT_EXIST (17). The
commands topicStatus and consumerProgress of 5.5.0 send this request; the Dashboard sends it before every
message.
Changed: ``lo`` has no effect, because there are no logical queues.
Refused with 3: the request under v42 and v49, as by brokers before 5.0.0.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.admin import GetTopicConfigRequestHeader
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.GET_TOPIC_CONFIG


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    name = request.decode_header(GetTopicConfigRequestHeader).topic
    topic = context.tables.topics.find(name)
    if topic is None:
        raise RequestError(ResponseCode.TOPIC_NOT_EXIST, f"No topic in this broker. topic: {name}")
    return RemotingCommand(ResponseCode.SUCCESS, body=topic)
