"""GET_TOPIC_STATS_INFO (202): return the bounds and the last store time of each write queue of a topic.

Kept from 4.9.4 ``AdminBrokerProcessor#getTopicStatsInfo``: an unknown topic fails with TOPIC_NOT_EXIST (17);
an empty queue has time 0.
Changed and refused: nothing.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.limits import QUEUES_PER_SLICE
from rewindmq.protocol.body.stats import TopicOffset, TopicStatsTable
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.admin import GetTopicStatsInfoRequestHeader
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.remoting.connection import Connection, Reply

CODE: Final = RequestCode.GET_TOPIC_STATS_INFO


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> Reply:
    name = request.decode_header(GetTopicStatsInfoRequestHeader).topic
    topic = context.tables.topics.find(name)
    if topic is None:
        raise RequestError(ResponseCode.TOPIC_NOT_EXIST, f"topic[{name}] not exist")
    queue_nums = topic.write_queue_nums
    return context.large_responses.reply_in_slices(request, queue_nums, _table(context, name, queue_nums))


def _table(context: BrokerContext, topic: str, queue_nums: int) -> Generator[None, None, TopicStatsTable]:
    store = context.store
    table = {}
    for queue_id in range(queue_nums):
        end = store.max_offset(topic, queue_id)
        last_update = max(0, store.store_time(topic, queue_id, end - 1)) if end else 0
        queue = MessageQueue(topic, context.config.broker_name, queue_id)
        table[queue] = TopicOffset(store.min_offset(topic, queue_id), end, last_update)
        if queue_id % QUEUES_PER_SLICE == QUEUES_PER_SLICE - 1:
            yield
    return TopicStatsTable(table)
