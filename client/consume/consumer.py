"""Consumer: base class of all consumers, with their subscriptions and requests of administrators."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from rewindmq.client.consume.local_offset_store import LocalFileOffsetStore
from rewindmq.client.consume.offset_store import OnFenced, RemoteOffsetStore
from rewindmq.client.consume.process_queue import ProcessQueue
from rewindmq.client.consume.rebalance import Rebalance
from rewindmq.client.consume.running_info import describe_consumer
from rewindmq.client.core.client_config import ClientConfig
from rewindmq.client.core.lifecycle import Client
from rewindmq.client.core.route import subscribe_queues
from rewindmq.protocol.body.heartbeat import ConsumerData, MessageModel, SubscriptionData
from rewindmq.protocol.body.route import TopicRouteData
from rewindmq.protocol.body.running_info import ConsumeMessageDirectlyResult, ConsumerRunningInfo
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.remoting.runtime_lease import RuntimeLease


class Consumer(Client):
    """Base class of push, pull and lite pull consumers.

    Attributes:
        made_at: time of construction, ms since the epoch.
        subscriptions: the subscription of each topic.
        rebalancer: the queues that this consumer owns; set by ``start()``.
        offset_store: the progress of these queues; set by ``start()``.
    """

    KIND = "consumer"
    DEFAULT_GROUP = "DEFAULT_CONSUMER"

    rebalancer: Rebalance
    offset_store: RemoteOffsetStore | LocalFileOffsetStore

    def __init__(self, group: str, config: ClientConfig, lease: RuntimeLease) -> None:
        super().__init__(group, config, lease)
        self.made_at = self.runtime.clock.now_ms()
        self.subscriptions: dict[str, SubscriptionData] = {}

    def next_version(self, topic: str) -> int:
        """Return the version of a topic's next subscription: ms since the epoch, above the version before.

        Brokers ignore a lower version, so the clock alone would not do: it may have been set back.
        """
        before = self.subscriptions.get(topic)
        now = self.runtime.clock.now_ms()
        return now if before is None else max(now, before.sub_version + 1)

    async def _open_offset_store(
        self,
        model: MessageModel,
        root: Path,
        owned: dict[MessageQueue, ProcessQueue],
        on_fenced: OnFenced | None = None,
    ) -> None:
        """Set ``offset_store``: at the broker, or below ``root`` for a broadcasting consumer.

        Args:
            owned: the owned queues; the rebalance keeps the table up to date.

        Raises:
            ClientError: the local file cannot be read.
        """
        if model is MessageModel.CLUSTERING:
            self.offset_store = RemoteOffsetStore(self.instance, self.group, owned, on_fenced)
        else:
            self.offset_store = LocalFileOffsetStore(self.instance, self.group, root, owned)
        await self.offset_store.load()

    # Implementation of `ConsumerInner`.

    def topics(self) -> Collection[str]:
        """Return the subscribed topics."""
        return self.subscriptions.keys()

    def route_changed(self, topic: str, route: TopicRouteData) -> None:
        """Update the queues of a subscribed topic."""
        if topic in self.subscriptions:
            self.rebalancer.topic_queues[topic] = subscribe_queues(topic, route)

    async def persist_offsets(self) -> None:
        """Commit the offsets of the owned queues."""
        await self.offset_store.persist_all(self.rebalancer.process_queues.keys())

    async def reset(self, topic: str, targets: Mapping[MessageQueue, int]) -> bool:
        """Return False: RESET_CONSUMER_CLIENT_OFFSET (220) has no effect on this kind of consumer.

        Specification: docs/spec/client.md C.14, docs/spec/reset.md D.6.
        """
        return False

    # Requests of administrators (`consumer_requests`).

    def heartbeat_data(self) -> ConsumerData:
        """Return this consumer's part of a heartbeat."""
        raise NotImplementedError

    def offsets_in_memory(self, topic: str) -> dict[MessageQueue, int]:
        """Return the offset of each queue of a topic; a blank ``topic`` means all topics."""
        return {
            queue: offset
            for queue, offset in self.offset_store.offsets().items()
            if queue.topic == topic or not topic.strip()
        }

    async def running_info(self) -> ConsumerRunningInfo:
        """Return the consumer's settings and subscriptions."""
        return describe_consumer(self)

    async def consume_message_directly(self, message: MessageExt) -> ConsumeMessageDirectlyResult:
        """Call the listener with one message.

        Raises:
            RequestError: SYSTEM_ERROR (1): this kind of consumer has no listener.
        """
        raise RequestError(
            ResponseCode.SYSTEM_ERROR, f"The Consumer Group <{self.group}> has no listener in this consumer"
        )
