"""Each way to reset a consumer group, once: its target, the stored offset, and the redelivered messages.

There is one topic with one queue and forty messages. Each way has its own group, which has consumed them all.
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
    ResetResult,
    TopicConfig,
)

TIME_SCALE = 0.02
TOPIC = "Orders"
MESSAGES = 40
TO_THE_END = -1


class Group:
    """A group with one consumer, which records the offsets that it receives."""

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
        """Wait until ``count`` messages have arrived, ten protocol minutes at most."""
        for _ in range(6_000):
            if len(self.received) >= count:
                return
            await asyncio.sleep(0.1 * TIME_SCALE)
        raise AssertionError(f"{self.name} received {self.received}")


class Ways:
    """The ways to reset a group, one method each, which returns the target offset."""

    def __init__(self, admin: AdminClient, broker: str, middle: int) -> None:
        self._admin = admin
        self._broker = broker
        # The store time of the first message of the second half, ms.
        self._middle = middle
        self._queue = MessageQueue(TOPIC, "broker-a", 0)

    async def classic(self, group: Group) -> int:
        """Notify the consumers, which apply the reset 10 s later."""
        result = await self._admin.resets.reset(TOPIC, group.name, self._middle)
        return result.offset_table[self._queue]

    async def classic_without_force(self, group: Group) -> int:
        """Reset to the end without force. Such a reset only moves offsets back, so the offset stays."""
        result = await self._admin.resets.reset(TOPIC, group.name, TO_THE_END, force=False)
        return result.offset_table[self._queue]

    async def server_side(self, group: Group) -> int:
        """Reset as RocketMQ 5 does: the broker stores the target at once, and the next pull returns it."""
        result = await self._admin.resets.reset(TOPIC, group.name, self._middle, mode="server")
        return result.offset_table[self._queue]

    async def fenced(self, group: Group) -> int:
        """Reset in RewindMQ's fenced mode, which cannot be lost with epoch-aware clients."""
        result = await self._admin.resets.reset(TOPIC, group.name, self._middle, mode="fenced")
        return result.offset_table[self._queue]

    async def one_queue_to_an_offset(self, group: Group) -> int:
        """Reset one queue of one broker to a given offset."""
        result = await self._admin.resets.reset_queue(
            self._broker, TOPIC, group.name, 0, offset=30, mode="fenced"
        )
        return result.offset_table[self._queue]

    async def offline(self, group: Group) -> int:
        """Reset a group without consumers: the broker refuses, and the admin client writes the offsets."""
        await group.consumer.shutdown()
        result = await self._admin.resets.reset(TOPIC, group.name, self._middle)
        assert result.written is not None
        return result.offset_table[self._queue]

    async def by_the_consumer_itself(self, group: Group) -> int:
        """Let the consumer reset its own queues, without any other consumer of the group."""
        # It resets one topic after the other, 10 s each. The retry topic is empty, so leave it out.
        group.consumer.unsubscribe(f"%RETRY%{group.name}")
        await group.consumer.reset_offset_by_timestamp(self._middle)
        return await self._admin.messages.search_offset(self._queue, self._middle)


async def try_way(
    name: str,
    group: Group,
    way: Callable[[Group], Awaitable[int]],
    again: int,
    stored: Callable[[str], Awaitable[int]],
) -> None:
    """Reset the group in one way, and check that exactly the messages after the target are redelivered."""
    group.received.clear()
    target = await way(group)
    at_once = await stored(group.name)
    if group.consumer.is_running:
        await group.wait_for(again)
        assert sorted(set(group.received)) == list(range(MESSAGES - again, MESSAGES))
    count = len(group.received)
    print(f"{name:<24} target {target:>2}   stored right after it {at_once:>2}   redelivered {count:>2}")


async def main() -> None:
    # A consumer logs a warning when a pull returns another offset, which is how it learns of some resets.
    logging.getLogger("rewindmq.client").setLevel(logging.ERROR)
    async with AsyncExitStack() as exits:
        cluster = await exits.enter_async_context(LocalCluster(brokers=1, time_scale=TIME_SCALE))
        admin = await exits.enter_async_context(cluster.admin())
        broker = cluster.brokers["broker-a"].address
        middle = await fill(admin, broker, cluster)
        ways = Ways(admin, broker, middle)
        # Each way, and the number of messages that are redelivered.
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
            stats = await admin.groups.examine_consume_stats(group, TOPIC)
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

        outcomes = await admin.resets.reset_groups(TOPIC, ["classic", "offline", "unknown"], TO_THE_END)
        for name, outcome in outcomes.items():
            shown = list(outcome.offset_table.values()) if isinstance(outcome, ResetResult) else outcome
            print(f"several groups: {name:<9} {shown}")
        copy = await admin.resets.clone_group_offset("offline", "copy-of-offline", TOPIC)
        print("cloned:", ", ".join(f"{queue.topic} queue {queue.queue_id}" for queue in copy.offset_table))


async def fill(admin: AdminClient, broker: str, cluster: AsyncLocalCluster) -> int:
    """Send the messages, and return the store time of the second half's first message, ms."""
    topic = TopicConfig(topic_name=TOPIC, read_queue_nums=1, write_queue_nums=1)
    await admin.topics.create_and_update_topic_config(broker, topic)
    async with cluster.producer("shop") as producer:
        for number in range(MESSAGES // 2):
            await producer.send(Message(TOPIC, b"order %d" % number))
        # Among messages of the same millisecond, RocketMQ 4.x finds an arbitrary one. The pauses give the
        # middle message a millisecond of its own.
        await asyncio.sleep(1 * TIME_SCALE)
        middle = await producer.send(Message(TOPIC, b"order %d" % (MESSAGES // 2)))
        await asyncio.sleep(1 * TIME_SCALE)
        for number in range(MESSAGES // 2 + 1, MESSAGES):
            await producer.send(Message(TOPIC, b"order %d" % number))
    return (await admin.messages.message_at(middle.message_queue, middle.queue_offset)).store_timestamp


if __name__ == "__main__":
    asyncio.run(main())
