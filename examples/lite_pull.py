"""A lite pull consumer pulls in the background; the application polls, seeks and commits.

Docs: docs/lite-pull.md.
"""

from __future__ import annotations

import asyncio

from rewindmq import (
    AsyncLocalCluster,
    LitePullConsumer,
    LocalCluster,
    Message,
    MessageExt,
)

TOPIC, GROUP = "Orders", "billing"
TIME_SCALE = 0.1


async def poll_all(consumer: LitePullConsumer, count: int) -> list[MessageExt]:
    """Poll until ``count`` messages have arrived."""
    got: list[MessageExt] = []
    while len(got) < count:
        got += await consumer.poll()
    return got


async def subscribed(cluster: AsyncLocalCluster) -> None:
    """Share the topic's four queues between two consumers of a group, as push consumers do."""
    first, second = (
        cluster.lite_pull_consumer(
            GROUP,
            instance_name=name,
            consume_from="first",
        )
        for name in ("first", "second")
    )
    first.subscribe(TOPIC)
    second.subscribe(TOPIC)
    async with first, second:
        while not len(first.assignment) == len(second.assignment) == 2:
            await asyncio.sleep(0.1 * TIME_SCALE)
        counts = [len(await poll_all(consumer, 50)) for consumer in (first, second)]
        assert counts == [50, 50]
        print(f"subscribed: two consumers with two queues each polled {counts[0]} + {counts[1]} messages")
        # Without persist=True, a commit stays in memory until the consumer next sends its offsets.
        for consumer in (first, second):
            await consumer.commit(consumer.assignment, persist=True)


async def assigned(cluster: AsyncLocalCluster) -> None:
    """Assign one queue to a consumer with its own group, and seek in that queue."""
    consumer = cluster.lite_pull_consumer("audit", auto_commit=False)
    async with consumer:
        queue = (await consumer.fetch_message_queues(TOPIC))[0]
        consumer.assign([queue])
        await consumer.seek(queue, 20)
        latest = await poll_all(consumer, 5)
        assert [message.queue_offset for message in latest] == [20, 21, 22, 23, 24]
        await consumer.seek_to_begin(queue)
        everything = await poll_all(consumer, 25)
        assert [message.queue_offset for message in everything] == list(range(25))
        print(f"assigned: from 20 on {len(latest)} messages, from the beginning {len(everything)}")
        consumer.pause([queue])
        await consumer.commit([queue], persist=True)
        assert await consumer.committed(queue) == 25
        print("assigned: 25 is committed")


async def main() -> None:
    async with LocalCluster(brokers=1, time_scale=TIME_SCALE) as cluster:
        async with cluster.producer("shop") as producer:
            for queue in await producer.fetch_publish_message_queues(TOPIC):
                for number in range(25):
                    await producer.send(Message(TOPIC, b"order %d" % number), queue=queue)
        await subscribed(cluster)
        await assigned(cluster)


if __name__ == "__main__":
    asyncio.run(main())
