"""Replays the messages stored between two times; no stored offset changes (docs/spec/client.md C.13)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final, Protocol

from rewindmq.client.consume.pull_result import PullResult, PullStatus
from rewindmq.client.consume.selector import MessageSelector
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message_queue import MessageQueue

_BATCH: Final = 32


class Puller(Protocol):
    """A pull consumer, as a replay sees it; every method may raise ``RewindMQError``."""

    async def fetch_subscribe_message_queues(self, topic: str) -> list[MessageQueue]: ...

    async def min_offset(self, queue: MessageQueue) -> int: ...

    async def max_offset(self, queue: MessageQueue) -> int: ...

    async def search_offset(self, queue: MessageQueue, timestamp: int) -> int: ...

    async def pull(
        self, queue: MessageQueue, expression: str | MessageSelector, offset: int, max_nums: int
    ) -> PullResult: ...


async def replay(
    consumer: Puller,
    topic: str,
    begin_ms: int,
    end_ms: int,
    expression: str | MessageSelector = "*",
) -> AsyncIterator[MessageExt]:
    """Iterate over a topic's messages with ``begin_ms <= store time <= end_ms``, queue after queue.

    The broker's search returns only an offset near the wanted time. A 4.x broker returns the nearer of two
    neighbours, any of several messages with equal times, and the last message for a later time. A loop
    between the offsets found for ``begin_ms`` and ``end_ms`` would therefore miss messages at both ends.

    So the replay uses the search only as a starting point. From there it steps back until a message is older
    than ``begin_ms``, and then reads forward until a message is newer than ``end_ms``. Store times never
    decrease along a queue of one broker, except after clock steps.

    Raises:
        ClientError: the topic has no route.
        RewindMQError: a broker refused or did not answer.
    """
    for queue in await consumer.fetch_subscribe_message_queues(topic):
        async for message in _replay_queue(consumer, queue, begin_ms, end_ms, expression):
            yield message


async def _replay_queue(
    consumer: Puller,
    queue: MessageQueue,
    begin_ms: int,
    end_ms: int,
    expression: str | MessageSelector,
) -> AsyncIterator[MessageExt]:
    end = await consumer.max_offset(queue)
    offset = await _first_offset(consumer, queue, begin_ms)
    while offset < end:
        result = await consumer.pull(queue, expression, offset, _BATCH)
        for message in result.messages:
            if message.store_timestamp > end_ms or message.queue_offset >= end:
                return
            if message.store_timestamp >= begin_ms:
                yield message
        if result.status is PullStatus.NO_NEW_MSG or result.next_begin_offset <= offset:
            return
        offset = result.next_begin_offset


async def _first_offset(consumer: Puller, queue: MessageQueue, begin_ms: int) -> int:
    """Return an offset at or before the first message that was stored at ``begin_ms`` or later."""
    low = await consumer.min_offset(queue)
    offset = await consumer.search_offset(queue, begin_ms)
    step = 1
    while offset > low:
        result = await consumer.pull(queue, "*", offset - 1, 1)
        before = result.messages[0] if result.messages else None
        if before is None or before.store_timestamp < begin_ms:
            break
        offset = max(low, offset - step)
        step *= 2
    return offset
