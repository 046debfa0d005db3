"""208 GET_CONSUME_STATS: a group's progress, in one topic or in all it has offsets for.

Kept from 4.9.4 ``AdminBrokerProcessor#getConsumeStats``: every read queue is listed, a missing offset as 0;
topics unknown here, or not subscribed by an online group, are left out. Changed: ``topicList`` (5.x) is
read as well. Refused: nothing.
"""

from __future__ import annotations

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.body.registration import TopicConfig
from rewindmq.protocol.body.stats import ConsumeStats, OffsetWrapper
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.admin import GetConsumeStatsRequestHeader
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.remoting.connection import Connection


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    header = request.decode_header(GetConsumeStatsRequestHeader)
    group = header.consumer_group
    stats = ConsumeStats()
    for name in _topics(context, header):
        topic = context.topics.find(name)
        if topic is None or not _is_consumed(context, group, name):
            continue
        _add_queues(context, group, topic, stats.offset_table)
        stats.consume_tps += context.stats.consume_tps(name, group)
    return RemotingCommand(ResponseCode.SUCCESS, body=stats)


def _topics(context: BrokerContext, header: GetConsumeStatsRequestHeader) -> list[str]:
    if header.topic:
        return [header.topic]
    if header.topic_list:
        return [name for name in header.topic_list.split(";") if name]
    return context.offsets.topics_of(header.consumer_group)


def _is_consumed(context: BrokerContext, group: str, topic: str) -> bool:
    online = context.consumers.find(group)
    return online is None or not online.subscriptions or topic in online.subscriptions


def _add_queues(
    context: BrokerContext, group: str, topic: TopicConfig, table: dict[MessageQueue, OffsetWrapper]
) -> None:
    store, name = context.store, topic.topic_name
    offsets = context.offsets.offsets_of(group, name)
    for queue_id in range(topic.read_queue_nums):
        consumed = max(0, offsets.get(queue_id, 0))
        last_consumed = max(0, store.store_time(name, queue_id, consumed - 1)) if consumed else 0
        queue = MessageQueue(name, context.config.broker_name, queue_id)
        table[queue] = OffsetWrapper(store.max_offset(name, queue_id), consumed, last_consumed)
