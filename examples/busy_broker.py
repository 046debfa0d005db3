"""One of two brokers reports that it is busy: producers send to the other one meanwhile."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter

from rewindmq import (
    LocalCluster,
    Message,
    Producer,
    ResponseError,
    TopicConfig,
)


async def send(producer: Producer, count: int) -> Counter[str]:
    """Send messages, and return how many of them each broker stored."""
    stored: Counter[str] = Counter()
    for number in range(count):
        result = await producer.send(Message("Orders", b"%d" % number))
        stored[result.message_queue.broker_name] += 1
    return stored


async def main() -> None:
    # The producer logs a warning for each message that it sends to another broker: twenty lines here.
    logging.getLogger("rewindmq.client").setLevel(logging.ERROR)
    async with LocalCluster(brokers=2) as cluster:
        busy = cluster.brokers["broker-a"].address
        async with cluster.admin() as admin:
            for broker in cluster.brokers.values():
                await admin.topics.create_and_update_topic_config(
                    broker.address, TopicConfig("Orders", read_queue_nums=2, write_queue_nums=2)
                )
            # As if the page cache were full: 4.9's producers retry at another broker after this response.
            await admin.brokers.update_broker_config(busy, {"emulatedBusy": "PC_SYNCHRONIZED"})
            async with cluster.producer("counter") as producer:
                stored = await send(producer, 20)
                print("broker-a is busy:", dict(stored))
                assert stored == {"broker-b": 20}

                # A busy broker may also return SYSTEM_BUSY (2). 4.9's producers raise it; 5.3's retry.
                await admin.brokers.update_broker_config(busy, {"emulatedBusy": "REJECTREQUEST"})
                code = 0
                try:
                    await send(producer, 20)
                except ResponseError as error:
                    print("4.9 raises:      ", error)
                    code = error.code
                assert code == 2
            async with cluster.producer("counter", profile="v53") as producer:
                stored = await send(producer, 20)
                print("5.3 retries:     ", dict(stored))
                assert stored == {"broker-b": 20}

                await admin.brokers.update_broker_config(busy, {"emulatedBusy": "NONE"})
                stored = await send(producer, 20)
                print("no longer busy:  ", dict(sorted(stored.items())))
                assert stored == {"broker-a": 10, "broker-b": 10}


if __name__ == "__main__":
    asyncio.run(main())
