"""15 UPDATE_CONSUMER_OFFSET: a consumer's progress.

Kept (``behaviour.md`` B.8): a plain put, smaller offsets included, that is how mqadmin rolls back; up to 5.0
no check that group and topic exist, under v53 26 and 17. Refused: names outside RocketMQ's character table
and negative numbers, with 1 (v53: 29), since they would end up in consumerOffset.json; more offsets than
that file may hold, with 1.
"""

from __future__ import annotations

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.offset import UpdateConsumerOffsetRequestHeader
from rewindmq.protocol.names import check_group, check_topic
from rewindmq.protocol.remoting.connection import Connection


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    header = request.decode_header(UpdateConsumerOffsetRequestHeader)
    group, topic = header.consumer_group, header.topic
    if context.rules.commit_is_checked:
        if context.groups.get(group) is None:
            raise RequestError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"Group {group} not exist!")
        if context.topics.find(topic) is None:
            raise RequestError(ResponseCode.TOPIC_NOT_EXIST, f"Topic {topic} not exist!")
    else:
        check_group(group)
        check_topic(topic)
    if header.queue_id < 0 or header.commit_offset < 0:
        raise RequestError(
            context.rules.bad_queue_code,
            f"queueId {header.queue_id} and commitOffset {header.commit_offset} must not be negative",
        )
    context.committer.commit(connection.remote_address, group, topic, header.queue_id, header.commit_offset)
    return RemotingCommand(ResponseCode.SUCCESS)
