"""A job compacts the store of a running broker, and a second broker serves the result."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rewindmq import AdminClient, LocalCluster, Message, Producer, PullConsumer
from rewindmq.cluster.async_cluster import AsyncLocalCluster
from rewindmq.pipeline.compact.job import compact
from rewindmq.pipeline.compact.options import CompactOptions, Format
from rewindmq.protocol.body.registration import TopicConfig
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message_queue import MessageQueue
from tests.pipeline.reference import read_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC, GROUP, BROKER = "Orders", "readers", "broker-a"
QUEUES = [MessageQueue(TOPIC, BROKER, number) for number in range(2)]
CONFIG = {"mappedFileSizeCommitLog": 1_048_576, "brokerClusterName": "DefaultCluster"}
KEYS = [f"key-{number}" for number in range(7)]
# Where the group stands, in each queue.
POSITION = 33


@pytest.mark.slow
async def test_what_survives_a_compaction_is_served_by_a_broker(spark: SparkSession, tmp_path: Path) -> None:
    """Queries by offset, key and time; and the group's next message is the same, or the next kept message."""
    async with LocalCluster(brokers=1, broker_config=CONFIG) as cluster:
        await _produce(cluster)
        await cluster.stop(BROKER)
        root = cluster.brokers[BROKER].store_path
        source = tmp_path / "source"
        root.rename(source)
        log = [message for message in read_log(source) if message.topic == TOPIC]
        newest = {(m.queue_id, m.keys): m for m in log}
        kept = [m for m in log if newest[m.queue_id, m.keys] is m]
        for format_ in Format:
            out = tmp_path / format_
            compact(spark, source, out, CompactOptions(format=format_, topics=(TOPIC,)))
            shutil.copytree((out / "current").resolve(), root)
            await cluster.restart(BROKER)
            await _check(cluster, kept, is_renumbered=format_ is Format.STORE)
            await cluster.stop(BROKER)
            shutil.rmtree(root)


async def _produce(cluster: AsyncLocalCluster) -> None:
    async with AdminClient(cluster.namesrv_address) as admin:
        topic = TopicConfig(TOPIC, read_queue_nums=len(QUEUES), write_queue_nums=len(QUEUES))
        await admin.topics.create_and_update_topic_config(cluster.brokers[BROKER].address, topic)
    async with Producer("writers", cluster.namesrv_address) as producer:
        for number in range(80):
            message = Message(TOPIC, b"value-%d" % number, "TagA", KEYS[number % 7])
            await producer.send(message, queue=QUEUES[number % 2])
    async with PullConsumer(GROUP, cluster.namesrv_address) as consumer:
        for queue in QUEUES:
            consumer.update_consume_offset(queue, POSITION)
            await consumer.persist_consume_offset(queue)
            # A commit has no answer. One that the broker has not read when it is stopped would be lost.
            assert await consumer.fetch_consume_offset(queue, from_store=True) == POSITION


async def _check(cluster: AsyncLocalCluster, kept: list[MessageExt], *, is_renumbered: bool) -> None:
    async with PullConsumer(GROUP, cluster.namesrv_address) as consumer:
        for queue in QUEUES:
            wanted = [m for m in kept if m.queue_id == queue.queue_id]
            found = await _consume(consumer, queue, 0)
            assert [m.body for m in found] == [m.body for m in wanted]
            assert [m.queue_offset for m in found] == [
                number if is_renumbered else m.queue_offset for number, m in enumerate(wanted)
            ]
            position = await consumer.fetch_consume_offset(queue, from_store=True)
            rest = await _consume(consumer, queue, position)
            assert [m.body for m in rest] == [m.body for m in wanted if m.queue_offset >= POSITION]
            for message, old in zip(found, wanted, strict=True):
                at = await consumer.search_offset(queue, old.store_timestamp)
                (first,) = (await consumer.pull(queue, "*", at, 1)).messages
                assert first.store_timestamp == message.store_timestamp
    async with AdminClient(cluster.namesrv_address) as admin:
        for key in KEYS if is_renumbered else ():
            messages = await admin.messages.query_message(TOPIC, key)
            assert {m.body for m in messages} == {m.body for m in kept if m.keys == key}


async def _consume(consumer: PullConsumer, queue: MessageQueue, offset: int) -> list[MessageExt]:
    found: list[MessageExt] = []
    end = await consumer.max_offset(queue)
    while offset < end:
        result = await consumer.pull(queue, "*", offset, 32)
        assert result.next_begin_offset > offset
        found += result.messages
        offset = result.next_begin_offset
    return found
