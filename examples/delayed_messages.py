"""Delayed messages: the broker delivers them some time after they were sent.

The program starts its own cluster, whose delay levels are 1, 2 and 4 seconds.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from rewindmq import (
    ConsumeConcurrentlyStatus,
    LocalCluster,
    Message,
    MessageExt,
    TopicConfig,
)

TOPIC = "Reminders"
DELAYS = {1: 1.0, 2: 2.0, 3: 4.0}


async def main() -> None:
    arrived: dict[str, float] = {}
    all_arrived = asyncio.Event()
    began = 0.0

    async def listen(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        for message in messages:
            arrived[message.body.decode()] = time.monotonic() - began
            if len(arrived) == len(DELAYS) + 1:
                all_arrived.set()
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    async with (
        LocalCluster(brokers=1, broker_config={"messageDelayLevel": "1s 2s 4s"}) as cluster,
        cluster.producer("clock") as producer,
        cluster.admin() as admin,
    ):
        # If the topic does not exist when the consumer starts, the consumer looks for it again after 30 s.
        broker = cluster.brokers["broker-a"].address
        await admin.topics.create_and_update_topic_config(broker, TopicConfig(TOPIC))
        await producer.send(Message(TOPIC, b"warming up"))
        consumer = cluster.push_consumer("sleepers", consume_from="first")
        consumer.subscribe(TOPIC)
        consumer.register_message_listener(listen)
        async with consumer:
            began = time.monotonic()
            # Send the longest delay first: each level has its own queue, so no message waits for another.
            for level in sorted(DELAYS, reverse=True):
                await producer.send(Message(TOPIC, f"level {level}".encode(), delay_level=level))
            async with asyncio.timeout(60):
                await all_arrived.wait()
    for name, seconds in sorted(arrived.items(), key=lambda item: item[1]):
        print(f"{seconds:4.1f} s  {name}")
    for level, delay in DELAYS.items():
        assert arrived[f"level {level}"] >= delay, "a message came early"


if __name__ == "__main__":
    asyncio.run(main())
