"""GET_CONSUME_STATS (208): return a group's progress in one topic, or in all topics where it has offsets.

Kept from 4.9.4 ``AdminBrokerProcessor#getConsumeStats``: the response lists every read queue, with 0 for a
missing offset. It omits topics that the broker does not know, or that an online group does not subscribe to.
Changed: the broker also reads ``topicList`` (5.x).
Refused: nothing.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.handlers.shared.group_progress import ProgressScan, is_consumed
from rewindmq.protocol.body.stats import ConsumeStats
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.admin import GetConsumeStatsRequestHeader
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.GET_CONSUME_STATS


async def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    header = request.decode_header(GetConsumeStatsRequestHeader)
    group = header.consumer_group
    stats = ConsumeStats()
    scan = ProgressScan(context)
    for name in _topics(context, header):
        topic = context.topics.find(name)
        if topic is not None and is_consumed(context, group, name):
            await scan.add(group, name, topic.read_queue_nums, stats)
    return RemotingCommand(ResponseCode.SUCCESS, body=stats)


def _topics(context: BrokerContext, header: GetConsumeStatsRequestHeader) -> list[str]:
    if header.topic:
        return [header.topic]
    if header.topic_list:
        # List each topic once, even if the request names it twice.
        return list(dict.fromkeys(name for name in header.topic_list.split(";") if name))
    return context.offsets.topics_of(header.consumer_group)
