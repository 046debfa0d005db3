"""What push and pull consumers share: their subscriptions, and what the instance asks about them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Unpack

from rewindmq.client.lifecycle import Client, ClientKwargs
from rewindmq.client.local_offset_store import LocalFileOffsetStore
from rewindmq.client.offset_store import RemoteOffsetStore
from rewindmq.client.rebalance import Rebalance
from rewindmq.client.route import subscribe_queues
from rewindmq.protocol.body.heartbeat import SubscriptionData
from rewindmq.protocol.body.route import TopicRouteData
from rewindmq.protocol.remoting.runtime import Runtime


class Consumer(Client):
    """Base of both consumers.

    Attributes:
        subscriptions: by topic.
        rebalancer: the queues this member owns; there once started.
        offset_store: its progress; there once started.
    """

    KIND = "consumer"
    DEFAULT_GROUP = "DEFAULT_CONSUMER"

    rebalancer: Rebalance
    offset_store: RemoteOffsetStore | LocalFileOffsetStore

    def __init__(
        self,
        group: str,
        namesrv_addr: str | None = None,
        runtime: Runtime | None = None,
        **client: Unpack[ClientKwargs],
    ) -> None:
        super().__init__(group, namesrv_addr, runtime, **client)
        self.subscriptions: dict[str, SubscriptionData] = {}

    # What the instance asks of either kind (``GroupConsumer``).

    def topics(self) -> Collection[str]:
        return self.subscriptions.keys()

    def route_changed(self, topic: str, route: TopicRouteData) -> None:
        if topic in self.subscriptions:
            self.rebalancer.topic_queues[topic] = subscribe_queues(topic, route)

    async def persist_offsets(self) -> None:
        await self.offset_store.persist_all(self.rebalancer.process_queues.keys())
