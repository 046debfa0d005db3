"""Pages of groups that never connected, changed to broadcasting, or have consumers with one client id."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families as text_format

from rewindmq import ConsumeConcurrentlyStatus, LocalCluster, Message, PushConsumer
from rewindmq.protocol.body.group import SubscriptionGroupConfig
from tests.dashboard.metrics.exposition import exposed, total
from tests.dashboard.reading import reader, store_offsets
from tests.dashboard.site import dashboard

COUNT = 5


async def consume(cluster: LocalCluster, topic: str, group: str) -> None:
    """Send messages of a topic, let a clustering group consume them, and send as many again."""
    namesrv = cluster.namesrv_address
    consumer, read = reader(group, namesrv, topic, COUNT)
    async with cluster.producer("odd-producer") as producer:
        for _ in range(COUNT):
            await producer.send(Message(topic, b"body"))
        async with consumer:
            await asyncio.wait_for(read.wait(), 60)
            await store_offsets(consumer, group, namesrv, topic, COUNT)
        for _ in range(COUNT):
            await producer.send(Message(topic, b"later"))


@contextlib.asynccontextmanager
async def broadcasting(namesrv: str, topic: str, group: str, root: Path) -> AsyncIterator[None]:
    """Run a broadcasting consumer of the group that every broker knows."""
    consumer = PushConsumer(group, namesrv, message_model="broadcasting", offset_root=root)
    consumer.subscribe(topic, "*")
    consumer.register_message_listener(lambda _: ConsumeConcurrentlyStatus.CONSUME_SUCCESS)
    async with consumer:
        await consumer.instance.send_heartbeats()
        yield


async def test_a_group_with_offsets_that_never_connected_has_pages(cluster: LocalCluster) -> None:
    await consume(cluster, "OddCopied", "odd-source")
    async with cluster.admin() as admin, dashboard(cluster.namesrv_address) as site:
        await admin.resets.clone_group_offset("odd-source", "odd-copy", "OddCopied")
        assert 'href="/groups/odd-copy"' in (await site.get("/groups?q=odd-copy")).text
        page = await site.get("/groups/odd-copy")
        assert page.status == 200
        assert f"<dt>Lag</dt><dd>{COUNT} <small>messages" in page.text
        for path, text in {
            "consumers": "No consumer of this group is connected",
            "fenced": "",
            "stacks": "",
            "dead-letters": "",
            "compare?with=odd-source": "",
            "reset": "OddCopied",
        }.items():
            page = await site.get(f"/groups/odd-copy/{path}")
            assert page.status == 200, path
            assert text in page.text, path


async def test_a_group_that_was_only_created_is_not_absent(cluster: LocalCluster) -> None:
    async with cluster.admin() as admin, dashboard(cluster.namesrv_address) as site:
        config = SubscriptionGroupConfig(group_name="odd-created")
        await admin.groups.create_and_update_subscription_group_config(
            cluster.brokers["broker-b"].address, config
        )
        page = await site.get("/groups/odd-created")
        assert page.status == 200
        assert "it has not consumed a message" in page.text


async def test_a_group_that_changed_to_broadcasting_has_no_lag(cluster: LocalCluster, tmp_path: Path) -> None:
    topic, group, namesrv = "OddBroadcast", "odd-broadcast", cluster.namesrv_address
    await consume(cluster, topic, group)
    lags = (
        ("rocketmq_group_diff", {"topic": topic, "group": group}),
        ("rocketmq_group_get_latency_by_storetime", {"topic": topic, "group": group}),
        ("rocketmq_consumer_offset", {"topic": topic, "group": group}),
        ("rocketmq_consumer_lag_messages", {"topic": topic, "consumer_group": group}),
        ("rocketmq_consumer_lag_latency", {"topic": topic, "consumer_group": group}),
    )
    async with cluster.admin() as admin, dashboard(namesrv) as site:
        await admin.resets.clone_group_offset(group, "odd-clustering", topic)
        found = exposed(text_format((await site.get("/metrics")).text))
        assert total(found, "rocketmq_group_diff", topic=topic, group=group) == COUNT
        assert f"<dt>Lag</dt><dd>{COUNT} <small>messages" in (await site.get(f"/groups/{group}")).text
    async with broadcasting(namesrv, topic, group, tmp_path), dashboard(namesrv) as site:
        found = exposed(text_format((await site.get("/metrics")).text))
        for name, wanted in lags:
            rows = [dict(labels) for labels in found.get(name, {})]
            assert not [row for row in rows if wanted.items() <= row.items()], name
        assert total(found, "rocketmq_group_count", group=group) == 1
        page = await site.get(f"/groups/{group}")
        assert page.status == 200
        assert "are broadcasting: each gets every message and keeps its own offsets" in page.text
        assert "<dt>Lag</dt>" not in page.text
        assert "Skip what has accumulated" not in page.text
        page = await site.get(f"/groups/odd-clustering/compare?with={group}")
        assert f"The consumers of {group} are broadcasting" in page.text
        assert f'<dt>Lag of {group}</dt><dd><span class="none">–</span></dd>' in page.text
        assert f"<dt>Lag of odd-clustering</dt><dd>{COUNT}</dd>" in page.text


async def test_a_client_id_that_two_consumers_share_is_named(cluster: LocalCluster) -> None:
    topic, group, namesrv = "OddShared", "odd-shared", cluster.namesrv_address
    async with cluster.producer("odd-producer") as producer:
        await producer.send(Message(topic, b"body"))
    async with contextlib.AsyncExitStack() as stack:
        # Each seed gives a runtime, and so a connection, of its own.
        for seed in (1, 2):
            consumer = PushConsumer(group, namesrv, instance_name="same", seed=seed)
            consumer.subscribe(topic, "*")
            consumer.register_message_listener(lambda _: ConsumeConcurrentlyStatus.CONSUME_SUCCESS)
            await stack.enter_async_context(consumer)
            await consumer.instance.send_heartbeats()
        site = await stack.enter_async_context(dashboard(namesrv))
        for path in (f"/groups/{group}", f"/groups/{group}/consumers"):
            text = (await site.get(path)).text
            assert text.count("2 consumers have the client id 127.0.0.1@same (127.0.0.1:") == 1
            assert path.endswith("consumers") or "<dt>Consumers</dt><dd>2</dd>" in text
        # The broker of both is named once.
        assert re.search("<td>(broker-a|broker-b|broker-a, broker-b)</td>", text)
