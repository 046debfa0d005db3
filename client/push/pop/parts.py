"""The parts that a push consumer has only if it pops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rewindmq.client.consume.rebalance import Rebalance
from rewindmq.client.push.host import PushHost
from rewindmq.client.push.listener import MessageListener
from rewindmq.client.push.pop.acknowledger import Acknowledger
from rewindmq.client.push.pop.assignments import Assignments
from rewindmq.client.push.pop.consume_pop import ConsumePopConcurrentlyService
from rewindmq.client.push.pop.pop_queues import PopQueues
from rewindmq.client.push.pop.pop_rebalance import PopRebalance
from rewindmq.protocol.names import RETRY_GROUP_TOPIC_PREFIX


@dataclass(frozen=True, slots=True)
class PopParts:
    """What one consumer pops with, made by ``make_pop_parts``."""

    consumer: PushHost
    assignments: Assignments
    acks: Acknowledger
    queues: PopQueues

    def rebalance(self, *arguments: Any, **options: Any) -> Rebalance:
        """Return a ``PopRebalance`` with the arguments of a ``Rebalance``."""
        return PopRebalance(
            *arguments,
            assignments=self.assignments,
            pops=self.queues,
            subscriptions=self.consumer.subscriptions,
            **options,
        )

    def consume_service(
        self, consumer: PushHost, listener: MessageListener, limit: int
    ) -> ConsumePopConcurrentlyService:
        """Return the service that calls the listener."""
        return ConsumePopConcurrentlyService(consumer, listener, limit, self.queues, self.acks)

    async def settle(self, rebalance: Rebalance) -> None:
        """Set the mode of the consumer's group before consumption starts.

        Raises:
            ClientError: a broker serves no consumers that pop.
        """
        topics = [
            (topic, sorted({queue.broker_name for queue in rebalance.topic_queues.get(topic) or ()}))
            for topic in self.consumer.subscriptions
            if not topic.startswith(RETRY_GROUP_TOPIC_PREFIX)
        ]
        await self.assignments.settle_all([(topic, names) for topic, names in topics if names])


def make_pop_parts(consumer: PushHost) -> PopParts:
    """Return the parts of a consumer whose instance is known."""
    instance = consumer.instance
    acks = Acknowledger(instance, consumer.group)
    assignments = Assignments(instance, consumer.group, consumer.options.allocate_strategy.name)
    return PopParts(consumer, assignments, acks, PopQueues(consumer, acks))
