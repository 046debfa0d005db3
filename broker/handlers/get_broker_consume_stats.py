"""GET_BROKER_CONSUME_STATS (317): return the progress of every group in every topic (brokerConsumeStats).

Kept from 4.9.7 ``AdminBrokerProcessor#fetchAllConsumeStatsInBroker``: the response lists the groups that have
settings, topic by topic, with the write queues. If the request asks for ordered topics, it lists only those.
It omits topics that the broker does not know, or that an online group does not subscribe to.
Changed and refused: nothing.
"""

from __future__ import annotations

from typing import Final

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.handlers.shared.group_progress import add_progress, is_consumed
from rewindmq.protocol.body.stats import ConsumeStats, ConsumeStatsList
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.admin import GetConsumeStatsInBrokerHeader
from rewindmq.protocol.remoting.connection import Connection

CODE: Final = RequestCode.GET_BROKER_CONSUME_STATS


def handle(context: BrokerContext, connection: Connection, request: RemotingCommand) -> RemotingCommand:
    ordered_only = request.decode_header(GetConsumeStatsInBrokerHeader).is_order
    body = ConsumeStatsList(broker_addr=context.registration.address)
    for group in context.groups.table().subscription_group_table:
        stats = _stats_of(context, group, ordered_only)
        body.consume_stats_list.append({group: stats})
        body.total_diff += sum(one.total_diff() for one in stats)
    return RemotingCommand(ResponseCode.SUCCESS, body=body)


def _stats_of(context: BrokerContext, group: str, ordered_only: bool) -> list[ConsumeStats]:
    found = []
    for name in context.offsets.topics_of(group):
        topic = context.topics.find(name)
        if topic is None or (ordered_only and not topic.order) or not is_consumed(context, group, name):
            continue
        stats = ConsumeStats()
        add_progress(context, group, name, topic.write_queue_nums, stats)
        found.append(stats)
    return found
