"""Progress: lets the test's own consumers do now what a wait needs and a timer of theirs would do later."""

from __future__ import annotations

from collections.abc import Iterable

from rewindmq.client.push.push_consumer import PushConsumer
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import retry_topic
from rewindmq.testing.messages.deliveries import Deliveries


class GroupProgress:
    """The progress of one group in one topic, as its consumers in this process know it.

    A consumer stores its offsets 10 s after its start and then every 5 s, and looks for new topics every
    30 s (RocketMQ 4.9.4 ``MQClientInstance#startScheduledTask``). A test that waits for the effect does
    not need these pauses, so its waits let the consumer act at once. The timers go on.
    """

    def __init__(self, group: str, topic: str, deliveries: Deliveries) -> None:
        self._topic = topic
        self._retry_topic = retry_topic(group)
        self._deliveries = deliveries
        # The offsets that ``store`` sent last, and the number of deliveries at that time. After a reset, the
        # same offsets are reached again by other deliveries.
        self._sent: tuple[dict[MessageQueue, int], int] = ({}, 0)

    def in_memory(self, consumers: Iterable[PushConsumer]) -> dict[MessageQueue, int]:
        """Return the offset of each queue that the consumers have in memory."""
        memory: dict[MessageQueue, int] = {}
        for consumer in consumers:
            memory.update(consumer.offsets_in_memory(self._topic))
        return memory

    async def store(self, consumers: list[PushConsumer]) -> bool:
        """Send the offsets in memory to the brokers, unless nothing was delivered since the last call.

        A commit that gets lost, or that a broker refuses after a reset, is left to the consumers' timers.

        Returns:
            True if commits were sent.
        """
        progress = (self.in_memory(consumers), len(self._deliveries.all))
        if progress == self._sent:
            return False
        self._sent = progress
        for consumer in consumers:
            await consumer.persist_offsets()
        return True

    async def find_retry_topic(self, consumers: list[PushConsumer]) -> None:
        """Let consumers that have no queue of the retry topic look for its route, and rebalance.

        A broker creates the topic at the group's first heartbeat, after the consumer has asked for routes.
        """
        for consumer in consumers:
            is_known = consumer.rebalancer.topic_queues.get(self._retry_topic)
            if not is_known and await consumer.instance.routes.refresh(self._retry_topic):
                consumer.instance.rebalance_service.wake()
