"""The dashboard's /metrics at a RocketMQ name server and broker."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest

from rewindmq import AdminClient, Message, Producer
from rewindmq.dashboard.metrics.table import METRICS, OWN
from rewindmq.protocol.body.registration import TopicConfig
from tests.dashboard.metrics.exposition import OPEN_METRICS, Exposed, exposed, open_metrics, total
from tests.dashboard.reading import reader, store_offsets
from tests.dashboard.site import dashboard
from tools.interop.servers import BROKER, RocketMQServer
from tools.interop.versions import SERVER_4

TOPIC, GROUP, COUNT = "measured", "measured-readers", 6
SECONDS: Final = 120.0


@pytest.mark.unlisted
async def test_a_rocketmq_broker_feeds_the_metrics_of_its_topics_and_groups() -> None:
    server = await asyncio.to_thread(RocketMQServer, SERVER_4)
    try:
        await _measure(server)
    except BaseException as error:
        server.note_logs(error)
        raise
    finally:
        await asyncio.to_thread(server.close)


async def _measure(server: RocketMQServer) -> None:
    namesrv = server.namesrv_address
    async with AdminClient(namesrv) as admin:
        config = TopicConfig(topic_name=TOPIC, read_queue_nums=2, write_queue_nums=2)
        await admin.topics.create_and_update_topic_config(server.broker_address, config)
        async with asyncio.timeout(SECONDS):
            while TOPIC not in await admin.topics.fetch_all_topic_list():  # noqa: ASYNC110 - in another process
                await asyncio.sleep(0.1)
    consumer, read = reader(GROUP, namesrv, TOPIC, COUNT)
    async with Producer("measured-producer", namesrv) as producer:
        async with consumer:
            for _ in range(COUNT):
                await producer.send(Message(TOPIC, b"body"))
            await asyncio.wait_for(read.wait(), SECONDS)
            await store_offsets(consumer, GROUP, namesrv, TOPIC, COUNT)
        for _ in range(2):
            await producer.send(Message(TOPIC, b"later"))
    found = await _scraped(namesrv)
    of_group = {"topic": TOPIC, "group": GROUP}
    assert total(found, "rocketmq_producer_offset", topic=TOPIC, broker=BROKER) == COUNT + 2
    assert total(found, "rocketmq_messages_in_total", topic=TOPIC, node_id=BROKER) == COUNT + 2
    assert total(found, "rocketmq_consumer_offset", **of_group) == COUNT
    assert total(found, "rocketmq_group_diff", **of_group, countOfOnlineConsumers="0") == 2
    assert total(found, "rocketmq_consumer_lag_messages", topic=TOPIC, consumer_group=GROUP) == 2
    assert total(found, "rocketmq_group_get_latency_by_storetime", **of_group) > 0
    assert total(found, "rewindmq_scrape_unanswered") == 0
    assert any(name.startswith("rocketmq_brokeruntime_commitlog_maxoffset") for name in found)
    # What only RewindMQ's brokers serve is left out, not 0.
    own = {name for name, metric in METRICS.items() if metric.origin == OWN}
    assert own & found.keys() == {
        "rewindmq_namesrv_up",
        "rewindmq_broker_up",
        "rewindmq_scrape_unanswered",
        "rewindmq_scrape_unreadable",
        "rewindmq_scrape_duration_seconds",
    }


async def _scraped(namesrv: str) -> Exposed:
    """Scrape until the broker, a JVM that has just started, answers every question in time."""
    async with asyncio.timeout(SECONDS):
        while True:
            async with dashboard(namesrv) as site:
                answer = await site.get("/metrics", Accept=OPEN_METRICS)
            found = exposed(open_metrics(answer.text))
            if total(found, "rewindmq_broker_up", broker=BROKER) == 1:
                return found
