"""Progress of a group in a topic, for GET_CONSUME_STATS (208) and GET_BROKER_CONSUME_STATS (317)."""

from __future__ import annotations

from rewindmq.broker.context import BrokerContext
from rewindmq.protocol.body.stats import ConsumeStats, OffsetWrapper
from rewindmq.protocol.message_queue import MessageQueue


def is_consumed(context: BrokerContext, group: str, topic: str) -> bool:
    """Return True if the group is offline, or subscribes to the topic: then its offsets are current."""
    online = context.consumers.find(group)
    return online is None or not online.subscriptions or topic in online.subscriptions


def add_progress(
    context: BrokerContext, group: str, topic: str, queue_nums: int, stats: ConsumeStats
) -> None:
    """Add the group's progress in a topic's queues to ``stats``; a missing offset counts as 0.

    The broker does not count pulls, so the number of messages in flight is 0.
    """
    store = context.store
    offsets = context.offsets.offsets_of(group, topic)
    for queue_id in range(queue_nums):
        consumed = max(0, offsets.get(queue_id, 0))
        last_consumed = max(0, store.store_time(topic, queue_id, consumed - 1)) if consumed else 0
        queue = MessageQueue(topic, context.config.broker_name, queue_id)
        end = store.max_offset(topic, queue_id)
        stats.offset_table[queue] = OffsetWrapper(
            end, consumed, last_consumed, consumed if context.profile.reports_pull_offset else None
        )
    stats.consume_tps += context.stats.consume_tps(topic, group)
