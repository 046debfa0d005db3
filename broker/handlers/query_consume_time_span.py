"""QUERY_CONSUME_TIME_SPAN (303): return the store times that a topic's queues span, and a group's position.

Kept from 4.9.7 ``AdminBrokerProcessor#queryConsumeTimeSpan``: the response lists every write queue, with -1
for an empty queue. An unknown topic fails with TOPIC_NOT_EXIST (17). The delay counts from the next message
to consume.
Changed: for a group without an offset the delay counts from the queue's first message; RocketMQ counts from
1970.
Refused: nothing.
"""

from __future__ import annotations

from collections.abc import Generator
from datetime import datetime
from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.limits import QUEUES_PER_SLICE
from rewindmq.protocol.body.stats import QueryConsumeTimeSpanBody, QueueTimeSpan
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.admin import QueryConsumeTimeSpanRequestHeader
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.remoting.connection import Connection, Reply

CODE: Final = RequestCode.QUERY_CONSUME_TIME_SPAN


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> Reply:
    header = request.decode_header(QueryConsumeTimeSpanRequestHeader)
    topic = context.tables.topics.find(header.topic)
    if topic is None:
        raise RequestError(ResponseCode.TOPIC_NOT_EXIST, f"topic[{header.topic}] not exist")
    queue_nums = topic.write_queue_nums
    return context.large_responses.reply_in_slices(request, queue_nums, _spans(context, header, queue_nums))


def _spans(
    context: BrokerContext, header: QueryConsumeTimeSpanRequestHeader, queue_nums: int
) -> Generator[None, None, QueryConsumeTimeSpanBody]:
    offsets = context.offsets.table.offsets_of(header.group, header.topic)
    spans = []
    for queue_id in range(queue_nums):
        queue = MessageQueue(header.topic, context.config.broker_name, queue_id)
        spans.append(_span(context, queue, offsets.get(queue_id, 0)))
        # A span takes some ten times as long as the other queries for a queue.
        if queue_id % (QUEUES_PER_SLICE // 10) == 0:
            yield
    return QueryConsumeTimeSpanBody(spans)


def _span(context: BrokerContext, queue: MessageQueue, consumed: int) -> QueueTimeSpan:
    store, name, queue_id = context.store, queue.topic, queue.queue_id
    first, end = store.min_offset(name, queue_id), store.max_offset(name, queue_id)
    earliest = store.store_time(name, queue_id, first)
    latest = store.store_time(name, queue_id, end - 1)
    reached = store.store_time(name, queue_id, consumed - 1) if consumed > 0 else earliest
    late_ms = 0
    if consumed < end:
        stored_ms = store.store_time(name, queue_id, max(first, consumed))
        # A clock that was set back is behind the store times.
        late_ms = max(0, context.runtime.clock.now_ms() - stored_ms)
    return QueueTimeSpan(
        queue, earliest, latest, reached, late_ms, _text(earliest), _text(latest), _text(reached)
    )


def _text(milliseconds: int) -> str:
    moment = datetime.fromtimestamp(milliseconds / 1_000).astimezone()
    return f"{moment:%Y-%m-%d#%H:%M:%S}:{milliseconds % 1_000:03}"
