"""What an application that pulls may ask about queues (docs/spec/client.md C.13)."""

from __future__ import annotations

from rewindmq.client.consume.consumer import Consumer
from rewindmq.client.core.route import subscribe_queues
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.message_queue import MessageQueue


class QueueReader(Consumer):
    """Base of the consumers whose application chooses offsets: pull and lite pull consumers.

    Where not said otherwise these raise ClientError when the consumer does not run or knows no such broker,
    ResponseError when the broker refuses, and RemotingError when nobody answers.
    """

    async def fetch_subscribe_message_queues(self, topic: str) -> list[MessageQueue]:
        """Every readable queue of a topic, sorted.

        Raises:
            ClientError: the topic has no route.
            RewindMQError: no name server answered.
        """
        self._require_running()
        route = await self.instance.api.topic_route(topic)
        queues = subscribe_queues(topic, route)
        if not queues:
            raise ClientError(f"Can not find Message Queue for this topic, {topic}")
        self.instance.routes.accept(topic, route)
        return queues

    async def min_offset(self, queue: MessageQueue) -> int:
        """The first message still kept; 0 for an empty queue."""
        return await self.instance.api.min_offset(await self._address(queue), queue)

    async def max_offset(self, queue: MessageQueue) -> int:
        """One past the last message."""
        return await self.instance.api.max_offset(await self._address(queue), queue)

    async def search_offset(self, queue: MessageQueue, timestamp: int, boundary: str | None = None) -> int:
        """The offset at a moment, with the semantics of the broker's search mode (docs/spec/broker.md B.10).

        Args:
            timestamp: ms.
            boundary: LOWER or UPPER, for brokers that know it (5.1.1).
        """
        address = await self._address(queue)
        return await self.instance.api.search_offset(address, queue, timestamp, boundary)

    async def _address(self, queue: MessageQueue) -> str:
        self._require_running()
        return await self.instance.routes.subscribe_address(queue.topic, queue.broker_name)
