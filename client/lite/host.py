"""The lite pull consumer, as its assignment and pull tasks see it."""

from __future__ import annotations

from typing import Protocol

from rewindmq.client.consume.local_offset_store import LocalFileOffsetStore
from rewindmq.client.consume.offset_store import RemoteOffsetStore
from rewindmq.client.consume.process_queue import ProcessQueue
from rewindmq.client.consume.rebalance import Rebalance
from rewindmq.client.core.instance import ClientInstance
from rewindmq.client.lite.assigned_queue import ConsumeRequests
from rewindmq.client.lite.options import LitePullOptions
from rewindmq.protocol.body.heartbeat import SubscriptionData
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.remoting.runtime import Runtime


class LiteHost(Protocol):
    """A lite pull consumer, as its assignment and pull tasks see it.

    Attributes:
        requests: the batches that wait for ``poll``.
    """

    group: str
    runtime: Runtime
    instance: ClientInstance
    options: LitePullOptions
    requests: ConsumeRequests
    offset_store: RemoteOffsetStore | LocalFileOffsetStore
    rebalancer: Rebalance

    def subscription_of(self, topic: str) -> SubscriptionData:
        """Return the subscription of a topic."""

    async def start_offset(self, queue: MessageQueue) -> int:
        """Return the group's offset of a queue, or a new group's first offset; raise ``RewindMQError``."""

    def begin_again(self, queue: MessageQueue, process_queue: ProcessQueue, offset: int, epoch: int) -> None:
        """Restart a queue that a fenced reset has moved."""
