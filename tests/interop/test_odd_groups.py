"""Shared client ids and groups that never connected, at RocketMQ."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

import pytest

from rewindmq import (
    AdminClient,
    ConsumeConcurrentlyStatus,
    Message,
    MessageQueue,
    Producer,
    PushConsumer,
    TopicConfig,
)
from rewindmq.client.admin.shared_ids import shared_client_ids
from tests.dashboard.reading import reader, store_offsets
from tools.interop.servers import BROKER, RocketMQServer
from tools.interop.versions import SERVER_4, SERVER_5

TOPIC, GROUP, COPY, TWINS = "odd", "odd-readers", "odd-copy", "odd-twins"
QUEUES, COUNT = 4, 8
SECONDS: Final = 120.0


@pytest.mark.unlisted
@pytest.mark.parametrize("release", [SERVER_4, SERVER_5])
async def test_shared_client_ids_and_copied_offsets_are_as_at_rocketmq(release: str) -> None:
    server = await asyncio.to_thread(RocketMQServer, release)
    try:
        await _look(server)
    except BaseException as error:
        server.note_logs(error)
        raise
    finally:
        await asyncio.to_thread(server.close)


async def _look(server: RocketMQServer) -> None:
    namesrv = server.namesrv_address
    async with AdminClient(namesrv) as admin, asyncio.timeout(SECONDS):
        config = TopicConfig(topic_name=TOPIC, read_queue_nums=QUEUES, write_queue_nums=QUEUES)
        await admin.topics.create_and_update_topic_config(server.broker_address, config)
        while TOPIC not in await admin.topics.fetch_all_topic_list():  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        consumer, read = reader(GROUP, namesrv, TOPIC, COUNT)
        async with Producer("odd-producer", namesrv) as producer, consumer:
            for queue_id in range(QUEUES):
                queue = MessageQueue(TOPIC, BROKER, queue_id)
                for _ in range(COUNT // QUEUES):
                    await producer.send(Message(TOPIC, b"x"), queue=queue)
            await read.wait()
            await store_offsets(consumer, GROUP, namesrv, TOPIC, COUNT)
        await admin.resets.clone_group_offset(GROUP, COPY, TOPIC)
        assert {GROUP, COPY} <= {*await admin.groups.consumer_groups()}
        table = (await admin.groups.examine_consume_stats(COPY)).offset_table
        assert {queue.topic for queue in table} == {TOPIC}
        assert sum(entry.consumer_offset for entry in table.values()) == COUNT
        await _look_at_twins(admin, namesrv, server.broker_address)


async def _look_at_twins(admin: AdminClient, namesrv: str, broker: str) -> None:
    """Start two consumers with one client id: both take the first half of the queues."""
    async with contextlib.AsyncExitStack() as stack:
        twins: list[PushConsumer] = []
        for seed in (1, 2):
            twin = PushConsumer(TWINS, namesrv, instance_name="same", seed=seed)
            twin.subscribe(TOPIC, "*")
            twin.register_message_listener(lambda _: ConsumeConcurrentlyStatus.CONSUME_SUCCESS)
            twins.append(await stack.enter_async_context(twin))
        while len((await admin.groups.examine_consumer_connection_info(TWINS)).connection_set) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        (addresses,) = shared_client_ids(await admin.groups.examine_consumer_connection_info(TWINS)).values()
        assert len(addresses) == 2
        ids = await twins[0].instance.api.consumer_ids(broker, TWINS)
        assert ids == [twins[0].client_id] * 2
        while [_owned(twin) for twin in twins] != [[0, 1], [0, 1]]:  # noqa: ASYNC110
            await asyncio.sleep(0.1)


def _owned(consumer: PushConsumer) -> list[int]:
    return sorted(queue.queue_id for queue in consumer.process_queues if queue.topic == TOPIC)
