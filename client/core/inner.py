"""What a client instance asks of the producers and consumers that share it.

RocketMQ's ``MQProducerInner`` and ``MQConsumerInner``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from rewindmq.protocol.body.heartbeat import ConsumerData
from rewindmq.protocol.body.route import TopicRouteData
from rewindmq.protocol.body.running_info import ConsumeMessageDirectlyResult, ConsumerRunningInfo
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message_queue import MessageQueue


class ClientInner(Protocol):
    """What an instance asks of each producer and consumer."""

    @property
    def group(self) -> str: ...

    def topics(self) -> Collection[str]:
        """Topics whose routes it uses."""

    def route_changed(self, topic: str, route: TopicRouteData) -> None:
        """The name server returned a route for ``topic``."""


class ConsumerInner(ClientInner, Protocol):
    """What an instance asks of each consumer besides."""

    def heartbeat_data(self) -> ConsumerData: ...

    async def rebalance(self) -> bool:
        """Take over and give up queues; return whether nothing is left to be done."""

    async def persist_offsets(self) -> None:
        """Commit the offsets of the queues it owns."""

    async def reset(self, topic: str, targets: Mapping[MessageQueue, int]) -> bool:
        """Go to the offsets that a reset (220) names; False if consumers of this kind ignore resets."""

    def queue_reset(self, queue: MessageQueue, offset: int, epoch: int) -> None:
        """A broker says that a fenced reset moved this queue."""

    def offsets_in_memory(self, topic: str) -> dict[MessageQueue, int]:
        """Its progress in a topic, in all of them when it is blank."""

    async def running_info(self) -> ConsumerRunningInfo:
        """What it is doing now."""

    async def consume_message_directly(self, message: MessageExt) -> ConsumeMessageDirectlyResult:
        """Hand one message to the listener, beside all that is pulled."""
