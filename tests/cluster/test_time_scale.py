"""A scaled cluster scales what messages wait for, too."""

from __future__ import annotations

from rewindmq.client import Message, Producer, PullConsumer
from rewindmq.cluster import LocalCluster
from rewindmq.protocol.remoting.runtime import system_runtime

SCALE = 0.002


async def test_the_time_scale_shortens_the_delays_of_messages() -> None:
    """Level 9 takes five minutes, 0.6 s here."""
    runtime = system_runtime(time_scale=SCALE)
    async with LocalCluster(brokers=1, time_scale=SCALE) as cluster:
        address = cluster.namesrv_address
        async with (
            Producer("PG", address, runtime=runtime) as producer,
            PullConsumer("G", address, runtime=runtime) as consumer,
        ):
            sent_at = runtime.clock.now_ms()
            queue = (await producer.send(Message("Later", b"x", delay_level=9))).message_queue
            await consumer.fetch_subscribe_message_queues("Later")
            messages = None
            while not messages:
                messages = (await consumer.pull_block_if_not_found(queue, "*", 0, 1)).messages
    assert sent_at + 600 <= messages[0].store_timestamp < sent_at + 60_000
