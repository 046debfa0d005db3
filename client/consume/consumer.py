"""What push and pull consumers share: their subscriptions, and what the instance asks about them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from rewindmq.client.consume.local_offset_store import LocalFileOffsetStore, default_offset_root
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
    """Base of both consumers.

    Attributes:
        made_at: ms since the epoch.
        subscriptions: by topic.
        rebalancer: the queues this member owns; there once started.
        offset_store: its progress; there once started.
    """

    KIND = "consumer"
    DEFAULT_GROUP = "DEFAULT_CONSUMER"

    rebalancer: Rebalance
    offset_store: RemoteOffsetStore | LocalFileOffsetStore

    def __init__(self, group: str, config: ClientConfig, lease: RuntimeLease) -> None:
        super().__init__(group, config, lease)
        self.made_at = self.runtime.clock.now_ms()
        self.subscriptions: dict[str, SubscriptionData] = {}

    async def _open_offset_store(
        self,
        model: MessageModel,
        root: Path | None,
        owned: dict[MessageQueue, ProcessQueue],
        on_fenced: OnFenced | None = None,
    ) -> None:
        """Set ``offset_store``: at the broker, or below ``root`` for a broadcasting consumer.

        Args:
            root: None takes ``default_offset_root``.
            owned: the queues owned, by queue; the rebalance keeps it up to date.

        Raises:
            ClientError: the local file cannot be read.
        """
        if model is MessageModel.CLUSTERING:
            self.offset_store = RemoteOffsetStore(self.instance, self.group, owned, on_fenced)
        else:
            root = root or default_offset_root()
            self.offset_store = LocalFileOffsetStore(self.instance, self.group, root, owned)
        await self.offset_store.load()

    # What the instance asks (``ConsumerInner``).

    def topics(self) -> Collection[str]:
        return self.subscriptions.keys()

    def route_changed(self, topic: str, route: TopicRouteData) -> None:
        if topic in self.subscriptions:
            self.rebalancer.topic_queues[topic] = subscribe_queues(topic, route)

    async def persist_offsets(self) -> None:
        await self.offset_store.persist_all(self.rebalancer.process_queues.keys())

    async def reset(self, topic: str, targets: Mapping[MessageQueue, int]) -> bool:
        """False: a reset (220) passes this consumer by (docs/spec/client.md C.14, docs/spec/reset.md D.6)."""
        return False

    # What administrators ask (``consumer_requests``).

    def heartbeat_data(self) -> ConsumerData:
        raise NotImplementedError

    def offsets_in_memory(self, topic: str) -> dict[MessageQueue, int]:
        """Its progress by queue, in all topics when ``topic`` is blank."""
        return {
            queue: offset
            for queue, offset in self.offset_store.offsets().items()
            if queue.topic == topic or not topic.strip()
        }

    async def running_info(self) -> ConsumerRunningInfo:
        """What it is doing now; a push consumer may raise RewindMQError, see there."""
        return describe_consumer(self)

    async def consume_message_directly(self, message: MessageExt) -> ConsumeMessageDirectlyResult:
        """Hand one message to the listener.

        Raises:
            RequestError: 1, this kind of consumer has none.
        """
        raise RequestError(
            ResponseCode.SYSTEM_ERROR, f"The Consumer Group <{self.group}> has no listener in this consumer"
        )
