"""start_offset: chooses the first pull offset of a newly assigned queue (docs/spec/client.md C.9).

This step is the reason that consumption restarts at the stored offset after a reset.
Source: RocketMQ 4.9.4 ``RebalancePushImpl#computePullFromWhereWithException``.
"""

from __future__ import annotations

from typing import Protocol

from rewindmq.protocol.body.heartbeat import ConsumeFromWhere
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import RETRY_GROUP_TOPIC_PREFIX


class OffsetSource(Protocol):
    """Offsets of a queue, from the broker or the local file. Each method may raise ``RewindMQError``."""

    async def stored_offset(self, queue: MessageQueue) -> int:
        """Return the group's stored offset, or -1 if there is none."""

    async def max_offset(self, queue: MessageQueue) -> int:
        """Return the offset after the last message."""

    async def search_offset(self, queue: MessageQueue, timestamp: int) -> int:
        """Return the offset at a time, ms since the epoch."""


async def start_offset(
    queue: MessageQueue, where: ConsumeFromWhere, consume_timestamp: int, source: OffsetSource
) -> int:
    """Return the offset of the queue's first pull.

    Args:
        consume_timestamp: ms since the epoch; used by CONSUME_FROM_TIMESTAMP only.

    Raises:
        RewindMQError: the source returned no offset; the caller must not consume the queue yet.
    """
    stored = await source.stored_offset(queue)
    if stored >= 0:
        return stored
    is_retry = queue.topic.startswith(RETRY_GROUP_TOPIC_PREFIX)
    if where is ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET:
        return 0
    if where is ConsumeFromWhere.CONSUME_FROM_TIMESTAMP:
        if is_retry:
            return await source.max_offset(queue)
        return await source.search_offset(queue, consume_timestamp)
    return 0 if is_retry else await source.max_offset(queue)
