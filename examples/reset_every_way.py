"""Each way of moving a consumer group, tried once: what the administrator is told, and what comes again.

One topic, one queue, forty messages. Every way has a group of its own, which has consumed everything before.
Docs: docs/reset.md.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack

from rewindmq import (
    AdminClient,
    AsyncLocalCluster,
    ConsumeConcurrentlyStatus,
    LocalCluster,
    Message,
    MessageExt,
    MessageQueue,
    TopicConfig,
)

TIME_SCALE = 0.02
TOPIC = "Orders"
MESSAGES = 40
TO_THE_END = -1


class Group:
    """A group with one member that counts what comes."""

    def __init__(self, name: str, cluster: AsyncLocalCluster) -> None:
        self.name = name
        self.received: list[int] = []
        self.consumer = cluster.push_consumer(name, consume_from="first")
        self.consumer.subscribe(TOPIC)
        self.consumer.register_message_listener(self._listen)

    async def _listen(self, messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        self.received += [message.queue_offset for message in messages]
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    async def wait_for(self, count: int) -> None:
        """Until so many messages came; all do within two protocol minutes, where the machine is quiet."""
        for _ in range(6_000):
            if len(self.received) >= count:
                return
            await asyncio.sleep(0.1 * TIME_SCALE)
        raise AssertionError(f"{self.name} received {self.received}")


class Ways:
    """The ways, one method each; they return the offset the group was sent to."""

    def __init__(self, admin: AdminClient, broker: str, middle: int) -> None:
        self._admin = admin
        self._broker = broker
        # The moment at which half of the messages were there.
        self._middle = middle
        self._queue = MessageQueue(TOPIC, "broker-a", 0)

    async def classic(self, group: Group) -> int:
        """222 and 220: the members carry it out, 10 s later."""
        result = await self._admin.reset_offset_by_timestamp(TOPIC, group.name, self._middle)
        return result.offset_table[self._queue]

    async def classic_without_force(self, group: Group) -> int:
        """Back only: the end of the queue is not behind the group, so it stays where it is."""
        result = await self._admin.reset_offset_by_timestamp(TOPIC, group.name, TO_THE_END, force=False)
        return result.offset_table[self._queue]

    async def server_side(self, group: Group) -> int:
        """RocketMQ 5: stored at once, and told to the next pull."""
        result = await self._admin.reset_offset_by_timestamp(TOPIC, group.name, self._middle, mode="server")
        return result.offset_table[self._queue]

    async def fenced(self, group: Group) -> int:
        """RewindMQ's own, which cannot be lost."""
        result = await self._admin.reset_offset_by_timestamp(TOPIC, group.name, self._middle, mode="fenced")
        return result.offset_table[self._queue]

    async def one_queue_to_an_offset(self, group: Group) -> int:
        """One queue of one broker, to exactly there."""
        result = await self._admin.reset_offset_of_queue(
            self._broker, TOPIC, group.name, 0, offset=30, mode="fenced"
        )
        return result.offset_table[self._queue]

    async def offline(self, group: Group) -> int:
        """Nobody is connected: 222 is refused with 206, so the offsets are written at the broker."""
        await group.consumer.shutdown()
        outcome = await self._admin.reset_or_write(TOPIC, group.name, self._middle)
        assert outcome.result is None
        return outcome.offsets[self._queue]

    async def by_the_consumer_itself(self, group: Group) -> int:
        """No broker is asked to tell anybody; the other members would not hear of it."""
        # It goes through its topics, 10 s each. Nothing waits to be retried here: let it leave that one out.
        group.consumer.unsubscribe(f"%RETRY%{group.name}")
        await group.consumer.reset_offset_by_timestamp(self._middle)
        return await self._admin.search_offset(self._queue, self._middle)


async def try_way(
    name: str,
    group: Group,
    way: Callable[[Group], Awaitable[int]],
    again: int,
    stored: Callable[[str], Awaitable[int]],
) -> None:
    """Carry it out, and see that exactly what lies behind the target comes again."""
    group.received.clear()
    target = await way(group)
    at_once = await stored(group.name)
    if group.consumer.is_running:
        await group.wait_for(again)
        assert sorted(set(group.received)) == list(range(MESSAGES - again, MESSAGES))
    came = len(group.received)
    print(f"{name:<24} target {target:>2}   stored right after it {at_once:>2}   came again {came:>2}")


async def main() -> None:
    # A consumer warns of each pull that the broker sends to another offset, which is how it hears of a reset.
    logging.getLogger("rewindmq.client").setLevel(logging.ERROR)
    async with AsyncExitStack() as exits:
        cluster = await exits.enter_async_context(LocalCluster(brokers=1, time_scale=TIME_SCALE))
        admin = await exits.enter_async_context(cluster.admin())
        broker = cluster.brokers["broker-a"].address
        middle = await fill(admin, broker, cluster)
        ways = Ways(admin, broker, middle)
        # What each does, and how many messages come again.
        table = {
            "classic": (ways.classic, 20),
            "classic-without-force": (ways.classic_without_force, 0),
            "server-side": (ways.server_side, 20),
            "fenced": (ways.fenced, 20),
            "one-queue-to-30": (ways.one_queue_to_an_offset, 10),
            "offline": (ways.offline, 20),
            "by-the-consumer-itself": (ways.by_the_consumer_itself, 20),
        }

        async def stored(group: str) -> int:
            stats = await admin.examine_consume_stats(group, TOPIC)
            return stats.offset_table[MessageQueue(TOPIC, "broker-a", 0)].consumer_offset

        groups = {name: Group(name, cluster) for name in table}
        for group in groups.values():
            await exits.enter_async_context(group.consumer)
        for name, group in groups.items():
            await group.wait_for(MESSAGES)
            while await stored(name) < MESSAGES:
                await asyncio.sleep(0.5 * TIME_SCALE)
        for name, (way, again) in table.items():
            await try_way(name, groups[name], way, again, stored)

        outcomes = await admin.reset_groups(TOPIC, ["classic", "offline", "unknown"], TO_THE_END)
        for outcome in outcomes:
            offsets = list(outcome.offsets.values())
            print(f"several groups: {outcome.group:<9} {outcome.error_message or offsets}")
        assert [outcome.is_success for outcome in outcomes] == [True, True, False]
        copy = await admin.clone_group_offset("offline", "copy-of-offline", TOPIC)
        print("cloned:", ", ".join(f"{queue.topic} queue {queue.queue_id}" for queue in copy.offset_table))


async def fill(admin: AdminClient, broker: str, cluster: AsyncLocalCluster) -> int:
    """Send the messages; returns the moment at which the second half begins, ms."""
    topic = TopicConfig(topic_name=TOPIC, read_queue_nums=1, write_queue_nums=1)
    await admin.create_and_update_topic_config(broker, topic)
    async with cluster.producer("shop") as producer:
        for number in range(MESSAGES // 2):
            await producer.send(Message(TOPIC, b"order %d" % number))
        # Of several messages of one millisecond RocketMQ 4.x goes to any: let the middle one be alone in its.
        await asyncio.sleep(1 * TIME_SCALE)
        middle = await producer.send(Message(TOPIC, b"order %d" % (MESSAGES // 2)))
        await asyncio.sleep(1 * TIME_SCALE)
        for number in range(MESSAGES // 2 + 1, MESSAGES):
            await producer.send(Message(TOPIC, b"order %d" % number))
    return (await admin.message_at(middle.message_queue, middle.queue_offset)).store_timestamp


if __name__ == "__main__":
    asyncio.run(main())
