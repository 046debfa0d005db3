"""Where a queue newly taken over is pulled from (docs/spec/client.md C.9).

After a rewind this is the step that turns the offset stored at the broker into actual consumption.
Source: RocketMQ 4.9.4 ``RebalancePushImpl#computePullFromWhereWithException``.
"""

from __future__ import annotations

from typing import Protocol

from rewindmq.protocol.body.heartbeat import ConsumeFromWhere
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import RETRY_GROUP_TOPIC_PREFIX


class OffsetSource(Protocol):
    """What a broker, or the local file, knows about a queue. Each may raise ``RewindMQError``."""

    async def stored_offset(self, queue: MessageQueue) -> int:
        """The group's offset, or -1 when it has none."""

    async def max_offset(self, queue: MessageQueue) -> int:
        """One past the last message."""

    async def search_offset(self, queue: MessageQueue, timestamp: int) -> int:
        """The offset of a moment, ms."""


async def start_offset(
    queue: MessageQueue, where: ConsumeFromWhere, consume_timestamp: int, source: OffsetSource
) -> int:
    """The offset the first pull asks for.

    Args:
        consume_timestamp: ms; used by CONSUME_FROM_TIMESTAMP only.

    Raises:
        RewindMQError: the source could not tell; the queue must not be consumed this time.
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
