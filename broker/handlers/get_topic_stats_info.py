"""GET_TOPIC_STATS_INFO (202): return the bounds and the last store time of each write queue of a topic.

Kept from 4.9.4 ``AdminBrokerProcessor#getTopicStatsInfo``: an unknown topic fails with TOPIC_NOT_EXIST (17);
an empty queue has time 0.
Changed and refused: nothing.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.body.stats import TopicOffset, TopicStatsTable
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.header.admin import GetTopicStatsInfoRequestHeader
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.GET_TOPIC_STATS_INFO


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    name = request.decode_header(GetTopicStatsInfoRequestHeader).topic
    topic = context.topics.find(name)
    if topic is None:
        raise RequestError(ResponseCode.TOPIC_NOT_EXIST, f"topic[{name}] not exist")
    store = context.store
    table = {}
    for queue_id in range(topic.write_queue_nums):
        end = store.max_offset(name, queue_id)
        last_update = max(0, store.store_time(name, queue_id, end - 1)) if end else 0
        queue = MessageQueue(name, context.config.broker_name, queue_id)
        table[queue] = TopicOffset(store.min_offset(name, queue_id), end, last_update)
    return RemotingCommand(ResponseCode.SUCCESS, body=TopicStatsTable(table))
