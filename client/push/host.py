"""What the services of a push consumer need of it: its pulls, its listener calls, its running info."""

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
    """What calls the listener (RocketMQ's ``ConsumeMessageService``).

    Attributes:
        is_orderly: one batch of a queue after the other.
        limit: batches in listeners at the same time.
    """

    @property
    def is_orderly(self) -> bool: ...

    @property
    def limit(self) -> int: ...

    def submit(
        self, messages: Sequence[MessageExt], queue: MessageQueue, process_queue: ProcessQueue
    ) -> None:
        """Have messages consumed that a pull brought."""


class PushHost(Protocol):
    """A push consumer, as its services see it; ``PushConsumer`` says what the attributes are."""

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
        """The queues owned now."""

    def gather_statistics(self) -> None:
        """Bring ``statistics`` up to date."""

    async def start_offset(self, queue: MessageQueue) -> int:
        """Where consumption of a queue begins; raises ``RewindMQError``."""

    def begin_again(self, queue: MessageQueue, process_queue: ProcessQueue, offset: int, epoch: int) -> None:
        """A fenced reset has moved this queue."""

    def forget_pulls(self, process_queue: ProcessQueue) -> None:
        """The queue's pulls have ended by themselves."""

    def drop_queue(self, queue: MessageQueue, process_queue: ProcessQueue) -> None:
        """End the queue's pulls, and have the results of running listeners discarded."""
