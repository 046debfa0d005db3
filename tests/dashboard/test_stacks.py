"""What the consumers of a group fail, are stuck in and are doing, over real HTTP and a real cluster."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Sequence
from typing import Final

from rewindmq import ConsumeConcurrentlyStatus, LocalCluster, Message, MessageExt
from rewindmq.dashboard.data.answer import Answer
from rewindmq.dashboard.data.consumers import ConnectedConsumer, GroupConsumers
from rewindmq.protocol.body.connection import Connection
from rewindmq.protocol.body.running_info import ConsumerRunningInfo, ConsumeStatus, ProcessQueueInfo
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import retry_topic
from tests.dashboard.site import dashboard
from tests.dashboard.test_reset_preview import create_topic

SECONDS: Final = 20.0


async def test_the_stacks_of_all_consumers_show_their_tasks(cluster: LocalCluster) -> None:
    for topic in ("Slow", retry_topic("waiters")):
        await create_topic(cluster, topic)
    called, done = asyncio.Event(), asyncio.Event()

    async def listen(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        called.set()
        await done.wait()
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    consumer = cluster.push_consumer("waiters", consume_from="first")
    consumer.subscribe("Slow")
    consumer.register_message_listener(listen)
    async with cluster.producer("p") as producer, consumer, dashboard(cluster.namesrv_address) as site:
        await producer.send(Message("Slow", b"one"))
        await asyncio.wait_for(called.wait(), SECONDS)
        page = await site.get("/groups/waiters/stacks")
        done.set()
        assert page.text.count("<pre") == 1
        assert "ConsumeConcurrentlyService._work" in page.text
        listed = (await site.get("/groups/waiters/consumers")).text
        assert re.search(r'<td class="n">\d+</td><td class="n">0\.0</td><td class="n">0</td>', listed)
    assert 'href="/groups/waiters/stacks" aria-current="page">Stacks</a>' in page.text


async def test_a_group_without_consumers_has_no_stacks(cluster: LocalCluster) -> None:
    await create_topic(cluster, retry_topic("nobody"))
    async with dashboard(cluster.namesrv_address) as site:
        assert "so there are no stacks" in (await site.get("/groups/nobody/stacks")).text
        gone = await site.get("/groups/gone/stacks")
        assert (gone.status, "<pre" in gone.text) == (404, False)


def test_failures_of_all_topics_are_added_and_a_queue_without_progress_is_named() -> None:
    now_ms = int(time.time() * 1000)
    queue = ProcessQueueInfo(cached_msg_count=3, last_consume_timestamp=now_ms - 61_000)
    info = ConsumerRunningInfo(
        properties={"PROP_CONSUME_TYPE": "CONSUME_PASSIVELY"},
        mq_table={MessageQueue("t", "b", 0): queue, MessageQueue("t", "b", 1): ProcessQueueInfo()},
        status_table={
            "t": ConsumeStatus(consume_failed_tps=0.5, consume_failed_msgs=7),
            "u": ConsumeStatus(consume_failed_tps=1.0, consume_failed_msgs=1),
        },
    )
    consumer = ConnectedConsumer(Connection(client_id="c", client_addr="a"), info=Answer(info))
    assert (consumer.failed_per_second, consumer.failed_in_hour) == (1.5, 8)
    (line,) = GroupConsumers(
        {"c": consumer, "silent": ConnectedConsumer(Connection(client_id="d", client_addr="a"))}
    ).without_progress(now_ms)
    assert "queueId=0" in line
    assert "maybe blocked" in line
