"""A lite pull consumer: it pulls ahead, the application polls, seeks and commits (docs/lite-pull.md)."""

from __future__ import annotations

import asyncio

from rewindmq import ConsumeFromWhere, LitePullConsumer, LocalCluster, Message, MessageExt, Producer
from rewindmq.protocol.remoting.runtime import Runtime, system_runtime

TOPIC, GROUP = "Orders", "billing"
TIME_SCALE = 0.1


async def poll_all(consumer: LitePullConsumer, count: int) -> list[MessageExt]:
    """Poll until that many messages have come."""
    got: list[MessageExt] = []
    while len(got) < count:
        got += await consumer.poll()
    return got


async def subscribed(namesrv: str, runtime: Runtime) -> None:
    """Two members of a group share the topic's four queues, as push consumers do."""
    first, second = (
        LitePullConsumer(
            GROUP,
            namesrv,
            runtime=runtime,
            instance_name=name,
            consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
        )
        for name in ("first", "second")
    )
    first.subscribe(TOPIC)
    second.subscribe(TOPIC)
    async with first, second:
        while not len(first.assignment) == len(second.assignment) == 2:
            await runtime.timers.sleep(0.1)
        counts = [len(await poll_all(consumer, 50)) for consumer in (first, second)]
        assert counts == [50, 50]
        print(f"subscribed: two members with two queues each polled {counts[0]} + {counts[1]} messages")
        # Noted in memory only; stored with the next persist, or now:
        for consumer in (first, second):
            await consumer.commit(consumer.assignment, persist=True)


async def assigned(namesrv: str, runtime: Runtime) -> None:
    """One reader takes a queue for itself, in a group of its own, and goes where it likes in it."""
    consumer = LitePullConsumer("audit", namesrv, runtime=runtime, auto_commit=False)
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
    runtime = system_runtime(time_scale=TIME_SCALE)
    async with LocalCluster(brokers=1, time_scale=TIME_SCALE) as cluster:
        namesrv = cluster.namesrv_address
        async with Producer("shop", namesrv, runtime=runtime) as producer:
            for queue in await producer.fetch_publish_message_queues(TOPIC):
                for number in range(25):
                    await producer.send(Message(TOPIC, b"order %d" % number), queue=queue)
        await subscribed(namesrv, runtime)
        await assigned(namesrv, runtime)


if __name__ == "__main__":
    asyncio.run(main())
