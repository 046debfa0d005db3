"""GET_CONSUME_STATS (208): return a group's progress in one topic, or in all topics where it has offsets.

Kept from 4.9.4 ``AdminBrokerProcessor#getConsumeStats``: the response lists every read queue, with 0 for a
missing offset. It omits topics that the broker does not know, or that an online group does not subscribe to.
Changed: the broker also reads ``topicList`` (5.x).
Refused: nothing.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.handlers.shared.group_progress import ProgressScan, is_consumed
from rewindmq.protocol.body.stats import ConsumeStats
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.admin import GetConsumeStatsRequestHeader
from rewindmq.protocol.remoting.connection import Connection, Reply

CODE: Final = RequestCode.GET_CONSUME_STATS


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> Reply:
    header = request.decode_header(GetConsumeStatsRequestHeader)
    return context.large_responses.build(request, _stats(context, header))


def _stats(
    context: BrokerContext, header: GetConsumeStatsRequestHeader
) -> Generator[None, None, ConsumeStats]:
    group = header.consumer_group
    stats = ConsumeStats()
    scan = ProgressScan(context)
    for name in _topics(context, header):
        topic = context.tables.topics.find(name)
        if topic is not None and is_consumed(context, group, name):
            yield from scan.add(group, name, topic.read_queue_nums, stats)
    return stats


def _topics(context: BrokerContext, header: GetConsumeStatsRequestHeader) -> list[str]:
    if header.topic:
        return [header.topic]
    if header.topic_list:
        # List each topic once, even if the request names it twice.
        return list(dict.fromkeys(name for name in header.topic_list.split(";") if name))
    return context.offsets.table.topics_of(header.consumer_group)
