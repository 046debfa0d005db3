"""Progress of a group in a topic, for GET_CONSUME_STATS (208) and GET_BROKER_CONSUME_STATS (317)."""

from __future__ import annotations

from collections.abc import Generator

from rewindmq.broker.context import BrokerContext
from rewindmq.broker.limits import MAX_PROGRESS_QUEUES, QUEUES_PER_SLICE
from rewindmq.protocol.body.stats import ConsumeStats, OffsetWrapper
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.message_queue import MessageQueue


def is_consumed(context: BrokerContext, group: str, topic: str) -> bool:
    """Return False if the group is online and subscribes only to other topics: its offsets are outdated."""
    online = context.clients.consumers.find(group)
    return online is None or not online.subscriptions or topic in online.subscriptions


class ProgressScan:
    """Reads the progress of groups for one response, in slices between which the broker serves others."""

    def __init__(self, context: BrokerContext) -> None:
        self._context = context
        self._queues = 0
        self._left = QUEUES_PER_SLICE

    def add(
        self, group: str, topic: str, queue_nums: int, stats: ConsumeStats
    ) -> Generator[None, None, None]:
        """Add the group's progress in a topic's queues to ``stats``; a missing offset counts as 0.

        Yields after each slice.

        The broker does not record pull offsets, so it reports 0 messages in flight.

        Raises:
            RequestError: SYSTEM_ERROR (1), the response would list more than ``MAX_PROGRESS_QUEUES`` queues.
        """
        context = self._context
        self._queues += queue_nums
        if self._queues > MAX_PROGRESS_QUEUES:
            raise RequestError(
                ResponseCode.SYSTEM_ERROR,
                f"the answer would list more than {MAX_PROGRESS_QUEUES} queues:"
                " ask for one group and one topic",
            )
        offsets = context.offsets.table.offsets_of(group, topic)
        for queue_id in range(queue_nums):
            stats.offset_table[MessageQueue(topic, context.config.broker_name, queue_id)] = _progress(
                context, topic, queue_id, max(0, offsets.get(queue_id, 0))
            )
            self._left -= 1
            if not self._left:
                self._left = QUEUES_PER_SLICE
                yield
        stats.consume_tps += context.stats.items.group_get_tps(topic, group)


def _progress(context: BrokerContext, topic: str, queue_id: int, consumed: int) -> OffsetWrapper:
    store = context.store
    last_consumed = max(0, store.store_time(topic, queue_id, consumed - 1)) if consumed else 0
    end = store.max_offset(topic, queue_id)
    return OffsetWrapper(
        end, consumed, last_consumed, consumed if context.profile.reports_pull_offset else None
    )
