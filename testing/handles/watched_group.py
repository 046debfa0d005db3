"""WatchedGroup: offsets, lag and dead letters of a consumer group, read from the brokers."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import ResponseError
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import dlq_topic
from rewindmq.testing.handles.context import Context
from rewindmq.testing.messages.kit_message import KitMessage

# A group without a consumer or an offset has neither a retry topic nor statistics.
_UNKNOWN: Final = frozenset((int(ResponseCode.TOPIC_NOT_EXIST), int(ResponseCode.CONSUMER_NOT_ONLINE)))


class WatchedGroup:
    """A consumer group and one topic that it consumes, seen through the brokers.

    Attributes:
        name: the group's name at the cluster; ``str(group)`` is the same.
        topic: the topic's name.
    """

    def __init__(self, context: Context, name: str, topic: str) -> None:
        self.name = name
        self.topic = topic
        self._context = context
        self._waiter = context.waiter

    def __str__(self) -> str:
        return self.name

    async def lag(self) -> dict[MessageQueue, int]:
        """Return for each queue how many messages lie behind the stored offset."""
        bounds = await self._context.queue_bounds(self.topic)
        stored = await self.offsets()
        return {queue: end - max(begin, stored.get(queue, begin)) for queue, (begin, end) in bounds.items()}

    async def offsets(self) -> dict[MessageQueue, int]:
        """Return the offsets that the brokers store for the group now; empty for an unknown group."""
        try:
            stats = await self._context.admin.groups.examine_consume_stats(self.name, self.topic)
        except ResponseError as error:
            if error.code in _UNKNOWN:
                return {}
            raise
        return {
            queue: entry.consumer_offset
            for queue, entry in stats.offset_table.items()
            if queue.topic == self.topic
        }

    async def caught_up(self, timeout: float | None = None) -> None:
        """Wait until the stored offset of each queue is the queue's end.

        Args:
            timeout: real seconds; None: 20 s and 60 s of the cluster's time.

        Raises:
            NotSeenError: not within the timeout; the text has the lag of each queue.
        """
        await self._waiter.until(self._behind, f"group {self.name} catches up", timeout)

    async def dead_letters(self, count: int = 1, timeout: float | None = None) -> list[KitMessage]:
        """Wait until the group has ``count`` dead letters or more; return all of them.

        Raises:
            NotSeenError: fewer within the timeout.
        """
        letters: list[KitMessage] = []

        async def condition() -> str | None:
            letters[:] = await self._dead_letters()
            return None if len(letters) >= count else f"{len(letters)}: {letters}"

        await self._waiter.until(condition, f"group {self.name} has {count} dead letters", timeout)
        return letters

    async def _dead_letters(self) -> list[KitMessage]:
        return await self._context.read(dlq_topic(self.name))

    async def _behind(self) -> str | None:
        """Return the queues that lag, or None."""
        lag = {queue: count for queue, count in (await self.lag()).items() if count}
        texts = [f"{queue.broker_name}/{queue.queue_id}: {count}" for queue, count in lag.items()]
        return f"lag {', '.join(texts)}" if texts else None
