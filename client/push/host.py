"""Interfaces between a push consumer and its services: pull loops, consume services, running info."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rewindmq.client.consume.local_offset_store import LocalFileOffsetStore
from rewindmq.client.consume.offset_store import RemoteOffsetStore
from rewindmq.client.consume.process_queue import ProcessQueue
from rewindmq.client.consume.rebalance import Rebalance
from rewindmq.client.core.instance import ClientInstance
from rewindmq.client.core.profile import ClientProfile
from rewindmq.client.push.consume_statistics import ConsumeStatistics
from rewindmq.client.push.consume_trace import ConsumeTrace
from rewindmq.client.push.listener_errors import ListenerErrors
from rewindmq.client.push.options import PushOptions
from rewindmq.protocol.body.heartbeat import SubscriptionData
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.remoting.runtime import Runtime


class ConsumeService(Protocol):
    """Calls the listener (RocketMQ's ``ConsumeMessageService``).

    Attributes:
        is_orderly: True if the batches of a queue are consumed one after the other.
        limit: maximum number of listener calls at the same time.
    """

    @property
    def is_orderly(self) -> bool: ...

    @property
    def limit(self) -> int: ...

    def submit(
        self, messages: Sequence[MessageExt], queue: MessageQueue, process_queue: ProcessQueue
    ) -> None:
        """Queue pulled messages for the listener."""


class PushHost(Protocol):
    """The part of a push consumer that its services use; ``PushConsumer`` documents the attributes."""

    group: str
    runtime: Runtime
    instance: ClientInstance
    options: PushOptions
    subscriptions: dict[str, SubscriptionData]
    offset_store: RemoteOffsetStore | LocalFileOffsetStore
    rebalancer: Rebalance
    errors: ListenerErrors
    trace: ConsumeTrace | None
    statistics: ConsumeStatistics
    is_suspended: bool

    @property
    def consume_service(self) -> ConsumeService: ...

    @property
    def profile(self) -> ClientProfile: ...

    @property
    def is_running(self) -> bool: ...

    @property
    def process_queues(self) -> dict[MessageQueue, ProcessQueue]:
        """The queues that the consumer owns now."""

    def gather_statistics(self) -> None:
        """Update ``statistics`` from the counts of the queues."""

    async def start_offset(self, queue: MessageQueue) -> int:
        """Return the offset of a new queue's first pull; raises ``RewindMQError``."""

    def begin_again(self, queue: MessageQueue, process_queue: ProcessQueue, offset: int, epoch: int) -> None:
        """Restart a queue that a fenced reset has moved."""

    def forget_pulls(self, process_queue: ProcessQueue) -> None:
        """Remove the pull loop of a queue after the loop has ended."""

    def drop_queue(self, queue: MessageQueue, process_queue: ProcessQueue) -> None:
        """Stop the queue's pulls, and discard the results of running listeners."""
