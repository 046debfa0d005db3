"""QueueReader: queue and offset queries for consumers that pull (docs/spec/client.md C.13)."""

from __future__ import annotations

from rewindmq.client.consume.consumer import Consumer
from rewindmq.client.core.route import subscribe_queues
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.message_queue import MessageQueue


class QueueReader(Consumer):
    """Base class of pull and lite pull consumers, whose application chooses the offsets.

    Unless a method says otherwise, it raises ClientError if the consumer does not run or the broker is
    unknown, ResponseError if the broker refuses, and RemotingError if no response arrives.
    """

    async def fetch_subscribe_message_queues(self, topic: str) -> list[MessageQueue]:
        """Return every readable queue of a topic, sorted.

        Raises:
            ClientError: the topic has no route.
            RewindMQError: no name server responded.
        """
        self._require_running()
        route = await self.instance.api.topic_route(topic)
        queues = subscribe_queues(topic, route)
        if not queues:
            raise ClientError(f"Can not find Message Queue for this topic, {topic}")
        self.instance.routes.accept(topic, route)
        return queues

    async def min_offset(self, queue: MessageQueue) -> int:
        """Return the offset of the first retained message; 0 for an empty queue."""
        return await self.instance.api.min_offset(await self._address(queue), queue)

    async def max_offset(self, queue: MessageQueue) -> int:
        """Return the offset after the last message."""
        return await self.instance.api.max_offset(await self._address(queue), queue)

    async def search_offset(self, queue: MessageQueue, timestamp: int, boundary: str | None = None) -> int:
        """Return the offset at a time, as the broker's search mode defines it (docs/spec/broker.md B.10).

        Args:
            timestamp: ms since the epoch.
            boundary: LOWER or UPPER, for brokers since 5.1.1.
        """
        address = await self._address(queue)
        return await self.instance.api.search_offset(address, queue, timestamp, boundary)

    async def _address(self, queue: MessageQueue) -> str:
        self._require_running()
        return await self.instance.routes.subscribe_address(queue.topic, queue.broker_name)
