"""/metrics at a live cluster of its own processes, read by prometheus-client's own parsers."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.parser import text_string_to_metric_families as text_format

from rewindmq import (
    AdminClient,
    LocalCluster,
    Message,
)
from rewindmq.cluster.up.topics import create_topics
from rewindmq.dashboard.metrics.samples import Samples
from rewindmq.dashboard.metrics.table import METRICS
from rewindmq.dashboard.web.page import DashboardSettings
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.remoting.runtime import system_runtime
from tests.dashboard.limits import limited_dashboard
from tests.dashboard.metrics.exposition import OPEN_METRICS, Exposed, exposed, open_metrics, total
from tests.dashboard.reading import reader, store_offsets
from tests.dashboard.scripted import Answers, name_server, scripted
from tests.dashboard.site import Site, dashboard

TOPIC, GROUP = "Measured", "measured-readers"
COUNT = 7
OF_GROUP = {"topic": TOPIC, "group": GROUP}


async def scraped(site: Site) -> Exposed:
    answer = await site.get("/metrics")
    assert answer.status == 200
    return exposed(text_format(answer.text))


async def test_offsets_lag_consumers_and_fenced_resets_are_those_of_the_cluster(
    cluster: LocalCluster,
) -> None:
    namesrv = cluster.namesrv_address
    consumer, read = reader(GROUP, namesrv, TOPIC, COUNT)
    async with cluster.producer("measured-producer") as producer:
        for _ in range(COUNT):
            await producer.send(Message(TOPIC, b"body"))
        async with consumer:
            await asyncio.wait_for(read.wait(), 60)
            await store_offsets(consumer, GROUP, namesrv, TOPIC, COUNT)
            async with dashboard(namesrv) as site:
                found = await scraped(site)
        assert total(found, "rocketmq_producer_offset", topic=TOPIC) == COUNT
        assert total(found, "rocketmq_messages_in_total", topic=TOPIC, node_type="broker") == COUNT
        assert total(found, "rocketmq_consumer_offset", **OF_GROUP) == COUNT
        assert total(found, "rocketmq_group_diff", **OF_GROUP, countOfOnlineConsumers="1", msgModel="1") == 0
        assert total(found, "rocketmq_group_get_latency_by_storetime", **OF_GROUP) == 0
        assert total(found, "rocketmq_group_count", group=GROUP, localaddr=consumer.client_id) == 1
        for _ in range(3):
            await producer.send(Message(TOPIC, b"later"))
    async with AdminClient(namesrv) as admin:
        await admin.resets.reset(TOPIC, GROUP, 0, mode="fenced")
    async with dashboard(namesrv) as site:
        found = await scraped(site)
    lag = COUNT + 3
    assert total(found, "rocketmq_group_diff", **OF_GROUP, countOfOnlineConsumers="0") == lag
    assert total(found, "rocketmq_consumer_lag_messages", topic=TOPIC, consumer_group=GROUP) == lag
    assert total(found, "rocketmq_consumer_lag_latency", topic=TOPIC, consumer_group=GROUP) > 0
    assert total(found, "rocketmq_consumer_offset", **OF_GROUP) == 0
    assert total(found, "rocketmq_group_count", group=GROUP) == 0
    assert total(found, "rewindmq_fenced_resets_total", **OF_GROUP) > 0
    assert total(found, "rewindmq_fenced_commits_total") == 0


async def test_the_connected_producers_of_a_group_are_counted_at_each_broker(cluster: LocalCluster) -> None:
    name = "rocketmq_producer_count"
    # A producer sends heartbeats to the brokers of its topics.
    await create_topics(cluster, [("Counted", 1)])
    async with contextlib.AsyncExitStack() as producers:
        for group in ("counted", "counted", "other"):
            producer = await producers.enter_async_context(cluster.producer(group))
            await producer.send(Message("Counted", b"body"))
            await producer.instance.send_heartbeats()
        async with dashboard(cluster.namesrv_address) as site:
            found = await scraped(site)
    for broker in cluster.brokers:
        assert total(found, name, broker=broker, group="counted") == 2
        assert total(found, name, broker=broker, group="other") == 1
    async with dashboard(cluster.namesrv_address) as site:
        found = await scraped(site)
    assert not any(("group", "counted") in labels for labels in found.get(name, {}))


async def test_both_formats_say_the_same_and_only_what_the_table_lists(cluster: LocalCluster) -> None:
    async with dashboard(cluster.namesrv_address) as site:
        plain = await site.get("/metrics", Accept="text/html")
        openly = await site.get("/metrics", Accept=f"{OPEN_METRICS},text/plain;version=0.0.4;q=0.5")
    assert plain.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert openly.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    families = open_metrics(openly.text)
    found = exposed(families)
    assert exposed(text_format(plain.text)) == found
    for name, rows in found.items():
        for labels in rows:
            assert {key for key, _ in labels} == set(METRICS[name].labels)
    kinds = {family.name + ("_total" if family.type == "counter" else ""): family.type for family in families}
    assert kinds == {name: METRICS[name].kind for name in found}


# 2 s pass until the broker counts as silent.
@pytest.mark.slow
async def test_a_broker_that_hangs_is_down_and_the_others_stay(cluster: LocalCluster) -> None:
    hanging, alive = sorted(cluster.brokers)
    cluster.pause(hanging)
    try:
        async with limited_dashboard(cluster.namesrv_address) as site:
            found = await scraped(site)
            site.require_one_limit("/metrics")
    finally:
        cluster.resume(hanging)
    assert total(found, "rewindmq_namesrv_up") == 1
    assert total(found, "rewindmq_broker_up", broker=hanging) == 0
    assert total(found, "rewindmq_scrape_unanswered", broker=hanging) == 1
    assert total(found, "rewindmq_broker_up", broker=alive) == 1
    assert total(found, "rocketmq_topic_number", node_id=alive) > 0
    # The hanging broker's part of the lag is unknown, so no sum is shown.
    assert "rocketmq_group_diff" not in found


async def test_an_answer_that_cannot_be_read_is_exposed_as_such() -> None:
    answers: Answers = {
        RequestCode.GET_BROKER_RUNTIME_INFO: lambda _, request: RemotingCommand(
            ResponseCode.SUCCESS, None, b"{never ends"
        )
    }
    async with (
        scripted(system_runtime(), "127.0.0.1", answers) as broker,
        scripted(system_runtime(), "127.0.0.1", name_server({"b": broker.address})) as namesrv,
        dashboard(namesrv.address) as site,
    ):
        found = await scraped(site)
    assert total(found, "rewindmq_scrape_unreadable", broker="b") == 1
    assert total(found, "rewindmq_scrape_unanswered", broker="b") == 0


async def test_without_a_name_server_one_metric_says_so() -> None:
    async with dashboard("127.0.0.1:1") as site:
        found = await scraped(site)
    assert total(found, "rewindmq_namesrv_up") == 0
    assert found.keys() == {"rewindmq_namesrv_up", "rewindmq_scrape_duration_seconds"}


async def test_scrapes_at_the_same_time_and_soon_after_ask_the_brokers_once(cluster: LocalCluster) -> None:
    async with dashboard(cluster.namesrv_address) as site:
        texts = {
            (await answer).text for answer in [asyncio.ensure_future(site.get("/metrics")) for _ in "abc"]
        }
        texts.add((await site.get("/metrics")).text)
    # The duration of the scrape differs from one to the next.
    assert len(texts) == 1


async def test_with_a_token_a_scrape_sends_it_as_bearer() -> None:
    async with dashboard("127.0.0.1:1", DashboardSettings("x", token="top-secret")) as site:
        assert (await site.get("/metrics")).status == 401
        assert (await site.get("/metrics", Authorization="Bearer wrong")).status == 401
        answer = await site.get("/metrics", Authorization="Bearer top-secret")
    assert answer.status == 200
    assert "top-secret" not in answer.text


def test_hostile_labels_are_escaped_and_no_number_that_is_none_is_exposed() -> None:
    hostile = 'a"b\\c\nrewindmq_namesrv_up 7 \u2028\x00 é'
    samples = Samples()
    samples.add("rocketmq_producer_tps", ("c", "b", hostile), 1.5)
    samples.add("rocketmq_producer_tps", ("c", "b", "t"), float("nan"))
    registry = CollectorRegistry(auto_describe=False)
    registry.register(samples)
    for accept, parse in ((OPEN_METRICS, open_metrics), ("", text_format)):
        encode, _ = choose_encoder(accept)
        found = exposed(parse(encode(registry).decode()))
        assert found == {
            "rocketmq_producer_tps": {
                frozenset({"cluster": "c", "broker": "b", "topic": hostile}.items()): 1.5
            }
        }
