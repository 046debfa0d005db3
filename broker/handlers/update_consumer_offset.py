"""UPDATE_CONSUMER_OFFSET (15): store a consumer's progress.

Kept (docs/spec/broker.md B.8): the broker stores any offset, also a smaller one; mqadmin relies on it to roll
back. Up to 5.0 the broker does not check that group and topic exist; under v53 the request fails with
SUBSCRIPTION_GROUP_NOT_EXIST (26) or TOPIC_NOT_EXIST (17). Until a pull consumes the mark of a server-side
reset, the request succeeds and stores nothing (docs/spec/reset.md D.9).
Changed: a commit from before a fenced reset fails with OFFSET_FENCED, and the response has the stored offset.
Refused with 1 (under v53 with INVALID_PARAMETER, 29), because the broker would store them: names outside
RocketMQ's character table, and negative numbers.
Refused with 1: more offsets than fit into that file.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.offsets.committer import Commit
from rewindmq.broker.store.tables.consumer_offset import OffsetRecord
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.offset import OffsetFencedResponseHeader, UpdateConsumerOffsetRequestHeader
from rewindmq.protocol.names import check_group, check_topic
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.UPDATE_CONSUMER_OFFSET


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    header = request.decode_header(UpdateConsumerOffsetRequestHeader)
    group, topic = header.consumer_group, header.topic
    if context.profile.commit_is_checked:
        if context.tables.groups.get(group) is None:
            raise RequestError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"Group {group} not exist!")
        if context.tables.topics.find(topic) is None:
            raise RequestError(ResponseCode.TOPIC_NOT_EXIST, f"Topic {topic} not exist!")
    else:
        check_group(group)
        check_topic(topic)
    if header.queue_id < 0 or header.commit_offset < 0:
        raise RequestError(
            context.profile.bad_queue_code,
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
    if context.offsets.marks.find(group, topic, header.queue_id) is not None:
        context.offsets.committer.ignore(commit)
        return RemotingCommand(ResponseCode.SUCCESS, remark="Offset has been previously reset")
    stored = context.offsets.committer.commit(commit)
    return RemotingCommand(ResponseCode.SUCCESS) if stored is None else _fenced(commit, stored)


def _fenced(commit: Commit, stored: OffsetRecord) -> RemotingCommand:
    return RemotingCommand(
        ResponseCode.OFFSET_FENCED,
        OffsetFencedResponseHeader(*stored),
        remark=f"commit of {commit.offset} for {commit.topic}@{commit.group}, queue {commit.queue_id}, not"
        f" stored: the queue was reset, its offset is {stored.offset} of epoch {stored.epoch};"
        " INVOKE_BROKER_TO_RESET_OFFSET (222) with resetMode=fenced moves it",
    )
