"""Interfaces through which a client instance calls its producers and consumers.

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
    """A producer or consumer, as its client instance sees it."""

    @property
    def group(self) -> str: ...

    def topics(self) -> Collection[str]:
        """Return the topics whose routes this client uses."""

    def route_changed(self, topic: str, route: TopicRouteData) -> None:
        """Update this client from a route that the name server returned for ``topic``."""


class ConsumerInner(ClientInner, Protocol):
    """A consumer, as its client instance sees it."""

    def heartbeat_data(self) -> ConsumerData: ...

    async def rebalance(self) -> bool:
        """Rebalance the topics of this consumer; return False to be called again soon (5.3)."""

    async def persist_offsets(self) -> None:
        """Commit the offsets of the owned queues."""

    async def reset(self, topic: str, targets: Mapping[MessageQueue, int]) -> bool:
        """Handle RESET_CONSUMER_CLIENT_OFFSET (220); return False if this kind of consumer ignores resets."""

    def queue_reset(self, queue: MessageQueue, offset: int, epoch: int) -> None:
        """Handle a broker's notification that a fenced reset moved this queue."""

    def offsets_in_memory(self, topic: str) -> dict[MessageQueue, int]:
        """Return the offsets in memory of a topic, or of all topics if ``topic`` is blank."""

    async def running_info(self) -> ConsumerRunningInfo:
        """Return settings, queues and rates for GET_CONSUMER_RUNNING_INFO (307)."""

    async def consume_message_directly(self, message: MessageExt) -> ConsumeMessageDirectlyResult:
        """Hand one message to the listener, apart from the pulled messages, and return the result."""
