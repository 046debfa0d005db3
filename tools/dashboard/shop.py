"""The cluster that the pictures and the browser tests look at: the topics and groups of a small shop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from rewindmq import (
    AdminClient,
    ConsumeConcurrentlyStatus,
    LocalCluster,
    Message,
    MessageExt,
    PushConsumer,
    TopicConfig,
)
from rewindmq.cluster.async_cluster import AsyncLocalCluster
from rewindmq.dashboard.app import make_app
from rewindmq.dashboard.data.cluster_source import ClusterSource
from rewindmq.dashboard.serving import serving
from rewindmq.dashboard.web.page import DashboardSettings

TOPICS: Final = ("invoices", "orders", "payments", "shipments")
# Waits are a tenth of RocketMQ's, such as the 20 s between two rebalances.
TIME_SCALE: Final = 0.1
_COUNT: Final = 60
_SECONDS: Final = 60.0


@asynccontextmanager
async def shop() -> AsyncIterator[AsyncLocalCluster]:
    """Run the cluster, with its consumers, until the block ends.

    - ``billing`` has consumed all orders.
    - ``reports`` has consumed the first orders, and is gone: its lag is two thirds of them.
    - ``shipping`` has two consumers that subscribed ``orders`` differently.
    - ``mailer`` gave up one message, its dead letter.
    """
    async with LocalCluster(brokers=2, time_scale=TIME_SCALE) as cluster, AsyncExitStack() as consumers:
        async with cluster.admin() as admin:
            for topic in TOPICS:
                config = TopicConfig(topic_name=topic, read_queue_nums=4, write_queue_nums=4)
                for broker in cluster.brokers.values():
                    await admin.topics.create_and_update_topic_config(broker.address, config)
            await _send(cluster, range(_COUNT // 3))
            async with _consumer(cluster, "reports", "orders", _COUNT // 3) as (reports, done):
                await asyncio.wait_for(done.wait(), _SECONDS)
                await reports.persist_offsets()
            await _send(cluster, range(_COUNT // 3, _COUNT))
            billing, done = await consumers.enter_async_context(
                _consumer(cluster, "billing", "orders", _COUNT)
            )
            for number, tags in enumerate(("paid", "paid || refunded")):
                shipping = cluster.push_consumer(
                    "shipping", consume_from="first", instance_name=f"shipping-{number}"
                )
                shipping.subscribe("orders", tags)
                shipping.register_message_listener(_accept)
                await consumers.enter_async_context(shipping)
            mailer = cluster.push_consumer("mailer", consume_from="first", max_reconsume_times=0)
            mailer.subscribe("payments")
            mailer.register_message_listener(_refuse)
            await consumers.enter_async_context(mailer)
            await asyncio.wait_for(done.wait(), _SECONDS)
            await billing.persist_offsets()
            await _until_there_is_a_dead_letter(admin)
        yield cluster


@asynccontextmanager
async def served_shop(
    settings: DashboardSettings | None = None,
) -> AsyncIterator[tuple[AsyncLocalCluster, str]]:
    """Run the cluster with a dashboard beside it; yield both, the dashboard as its address."""
    settings = settings or DashboardSettings("form-token", hosts=frozenset({"127.0.0.1"}))
    async with (
        shop() as cluster,
        AdminClient(cluster.namesrv_address) as admin,
        serving(make_app(ClusterSource(admin), settings), "127.0.0.1", 0) as url,
    ):
        yield cluster, url


async def _send(cluster: AsyncLocalCluster, numbers: range) -> None:
    async with cluster.producer("shop") as producer:
        queues = sorted(await producer.fetch_publish_message_queues("orders"))
        for number in numbers:
            body = b'{"order": %d, "customer": "C-%04d", "total": "%d.90"}' % (
                number,
                7 * number,
                12 + number,
            )
            order = Message("orders", body, "paid" if number % 3 else "refunded", f"order-{number}")
            await producer.send(order, queue=queues[number % len(queues)])
        if 0 in numbers:
            await producer.send(Message("payments", bytes(range(256)) * 8, "card", "payment-1"))
            await producer.send(
                Message("shipments", "Äpfel für <b>Zürich</b>\n".encode() * 2000, None, "big")
            )


@asynccontextmanager
async def _consumer(
    cluster: AsyncLocalCluster, group: str, topic: str, count: int
) -> AsyncIterator[tuple[PushConsumer, asyncio.Event]]:
    """Run a consumer; the event is set when it has consumed ``count`` messages."""
    done, left = asyncio.Event(), count

    async def listen(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        nonlocal left
        left -= len(messages)
        if left <= 0:
            done.set()
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    consumer = cluster.push_consumer(group, consume_from="first")
    consumer.subscribe(topic)
    consumer.register_message_listener(listen)
    async with consumer:
        yield consumer, done


async def _accept(_messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
    return ConsumeConcurrentlyStatus.CONSUME_SUCCESS


async def _refuse(_messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
    return ConsumeConcurrentlyStatus.RECONSUME_LATER


async def _until_there_is_a_dead_letter(admin: AdminClient) -> None:
    """Wait until the name server knows the topic, which the broker registers with its first message."""
    async with asyncio.timeout(_SECONDS):
        while "%DLQ%mailer" not in await admin.topics.fetch_all_topic_list():  # noqa: ASYNC110 - in another process
            await asyncio.sleep(0.05)
