"""GET_BROKER_CONSUME_STATS (317): return the progress of every group in every topic (brokerConsumeStats).

Kept from 4.9.7 ``AdminBrokerProcessor#fetchAllConsumeStatsInBroker``: the response lists the groups that have
settings, topic by topic, with the write queues. If the request asks for ordered topics, it lists only those.
It omits topics that the broker does not know, or that an online group does not subscribe to.
Changed and refused: nothing.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.handlers.shared.group_progress import ProgressScan, is_consumed
from rewindmq.protocol.body.stats import ConsumeStats, ConsumeStatsList
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.admin import GetConsumeStatsInBrokerHeader
from rewindmq.protocol.remoting.connection import Connection, Reply

CODE: Final = RequestCode.GET_BROKER_CONSUME_STATS


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> Reply:
    ordered_only = request.decode_header(GetConsumeStatsInBrokerHeader).is_order
    return context.large_responses.build(request, _stats(context, ordered_only))


def _stats(context: BrokerContext, ordered_only: bool) -> Generator[None, None, ConsumeStatsList]:
    body = ConsumeStatsList(broker_addr=context.background.registration.address)
    scan = ProgressScan(context)
    for group in context.tables.groups.table().subscription_group_table:
        found = []
        for name in context.offsets.table.topics_of(group):
            topic = context.tables.topics.find(name)
            if topic is None or (ordered_only and not topic.order) or not is_consumed(context, group, name):
                continue
            stats = ConsumeStats()
            yield from scan.add(group, name, topic.write_queue_nums, stats)
            found.append(stats)
        body.consume_stats_list.append({group: found})
        body.total_diff += sum(stats.total_diff() for stats in found)
    return body
