"""One of two brokers says it is busy: senders go to the other, until it is well again."""

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


async def where(producer: Producer, count: int) -> Counter[str]:
    """How many of some messages each broker took."""
    taken: Counter[str] = Counter()
    for number in range(count):
        result = await producer.send(Message("Orders", b"%d" % number))
        taken[result.message_queue.broker_name] += 1
    return taken


async def main() -> None:
    # The producer warns of each message that it sends elsewhere: twenty lines here.
    logging.getLogger("rewindmq.client").setLevel(logging.ERROR)
    async with LocalCluster(brokers=2) as cluster:
        busy = cluster.brokers["broker-a"].address
        async with cluster.admin() as admin:
            for broker in cluster.brokers.values():
                await admin.create_and_update_topic_config(
                    broker.address, TopicConfig("Orders", read_queue_nums=2, write_queue_nums=2)
                )
            # As after its page cache filled up. 4.9's producers try another broker after this answer.
            await admin.update_broker_config(busy, {"emulatedBusy": "PC_SYNCHRONIZED"})
            async with cluster.producer("counter") as producer:
                taken = await where(producer, 20)
                print("broker-a is busy:", dict(taken))
                assert taken == {"broker-b": 20}

                # The other sign of a busy broker, code 2, is one that they give up on; those of 5.3 do not.
                await admin.update_broker_config(busy, {"emulatedBusy": "REJECTREQUEST"})
                code = 0
                try:
                    await where(producer, 20)
                except ResponseError as error:
                    print("4.9 gives up:    ", error)
                    code = error.code
                assert code == 2
            async with cluster.producer("counter", profile="v53") as producer:
                taken = await where(producer, 20)
                print("5.3 goes on:     ", dict(taken))
                assert taken == {"broker-b": 20}

                await admin.update_broker_config(busy, {"emulatedBusy": "NONE"})
                taken = await where(producer, 20)
                print("well again:      ", dict(sorted(taken.items())))
                assert taken == {"broker-a": 10, "broker-b": 10}


if __name__ == "__main__":
    asyncio.run(main())
