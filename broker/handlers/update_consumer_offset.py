"""15 UPDATE_CONSUMER_OFFSET: a consumer's progress.

Kept (docs/spec/broker.md B.8): a plain put, smaller offsets included, that is how mqadmin rolls back; up to
5.0 no check that group and topic exist, under v53 26 and 17; while a mark of a server reset waits, success
and nothing stored (docs/spec/reset.md D.9). Changed: a commit that a fenced reset has overtaken is answered
OFFSET_FENCED with what is stored. Refused: names outside RocketMQ's character table and negative numbers,
with 1 (v53: 29), since they would end up in consumerOffset.json; more offsets than fit into that file, with
1.
"""

from __future__ import annotations

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.offset_commit import Commit
from rewindmq.broker.store.consumer_offset import OffsetRecord
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.offset import OffsetFencedResponseHeader, UpdateConsumerOffsetRequestHeader
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
    commit = Commit(
        connection,
        group,
        topic,
        header.queue_id,
        header.commit_offset,
        header.epoch,
        RequestCode.UPDATE_CONSUMER_OFFSET,
    )
    if context.marks.find(group, topic, header.queue_id) is not None:
        context.committer.pass_over(commit)
        return RemotingCommand(ResponseCode.SUCCESS, remark="Offset has been previously reset")
    stored = context.committer.commit(commit)
    return RemotingCommand(ResponseCode.SUCCESS) if stored is None else _fenced(commit, stored)


def _fenced(commit: Commit, stored: OffsetRecord) -> RemotingCommand:
    return RemotingCommand(
        ResponseCode.OFFSET_FENCED,
        OffsetFencedResponseHeader(*stored),
        remark=f"commit of {commit.offset} for {commit.topic}@{commit.group}, queue {commit.queue_id}, not"
        f" stored: the queue was reset, and stands at {stored.offset} of epoch {stored.epoch}; administrators"
        " move it by 222 with resetMode=fenced",
    )
