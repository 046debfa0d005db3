"""LIST_REWINDS (190003): return a group's offsets, and what was handed out since its queues were set back.

RewindMQ's own request; its number is far from RocketMQ's.
Kept, in memory: the latest rewinds of 20,000 queues.
Refused with 17: an unknown topic. Refused with 1: an answer that does not fit into a frame.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.limits import QUEUES_PER_SLICE
from rewindmq.protocol.body.rewind import QueueRewind, RewindList
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.admin import ListRewindsRequestHeader
from rewindmq.protocol.remoting.connection import Connection, Reply

CODE: Final = RequestCode.LIST_REWINDS


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> Reply:
    header = request.decode_header(ListRewindsRequestHeader)
    topic = context.tables.topics.find(header.topic)
    if topic is None:
        raise RequestError(ResponseCode.TOPIC_NOT_EXIST, f"topic[{header.topic}] not exist")
    queues = max(topic.read_queue_nums, topic.write_queue_nums)
    return context.large_responses.reply_in_slices(request, queues, _body(context, header, queues))


def _body(
    context: BrokerContext, header: ListRewindsRequestHeader, queues: int
) -> Generator[None, None, RewindList]:
    body = RewindList()
    for queue_id in range(queues):
        body.queues.append(_queue(context, header.group, header.topic, queue_id))
        if queue_id % QUEUES_PER_SLICE == QUEUES_PER_SLICE - 1:
            yield
    return body


def _queue(context: BrokerContext, group: str, topic: str, queue_id: int) -> QueueRewind:
    return QueueRewind(
        queue_id,
        context.offsets.table.query(group, topic, queue_id),
        context.store.max_offset(topic, queue_id),
        context.offsets.rewinds.awaited.get((group, topic, queue_id)),
        context.offsets.rewinds.find(group, topic, queue_id),
    )
