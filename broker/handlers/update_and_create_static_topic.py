"""UPDATE_AND_CREATE_STATIC_TOPIC (513): refused; name the ordinary topic to create instead of a static one.

Static topics exist from 5.0.0 on. rocketmq-streams asks for two for each of its shuffle topics, unless topics
of these names exist already.
Kept: nothing.
Changed: under v53 the broker has no static topics.
Refused with 3: the request; the remark says what to create.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.admin import CreateTopicRequestHeader
from rewindmq.protocol.names import check_topic
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    header = request.decode_header(CreateTopicRequestHeader)
    check_topic(header.topic, context.profile.bad_queue_code)
    raise RequestError(
        ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
        "RewindMQ has no static topics: before the program starts, create an ordinary topic of this name,"
        f" updateTopic -c {context.config.broker_cluster_name} -t {header.topic} -r {header.read_queue_nums}"
        f" -w {header.write_queue_nums}",
    )
