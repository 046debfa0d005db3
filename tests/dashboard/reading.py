"""A consumer that reads a number of messages, for tests of what pages and metrics show of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from rewindmq import AdminClient, ConsumeConcurrentlyStatus, MessageExt, PushConsumer


def reader(
    group: str, namesrv: str, topic: str, count: int, expression: str = "*"
) -> tuple[PushConsumer, asyncio.Event]:
    """Return a consumer that is not started, and an event that is set when it has read ``count`` messages."""
    read = asyncio.Event()
    seen: set[str] = set()

    async def listen(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        seen.update(message.msg_id for message in messages)
        if len(seen) >= count:
            read.set()
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    consumer = PushConsumer(group, namesrv, consume_from="first")
    consumer.subscribe(topic, expression)
    consumer.register_message_listener(listen)
    return consumer, read


async def store_offsets(consumer: PushConsumer, group: str, namesrv: str, topic: str, count: int) -> None:
    """Let the broker store that the group has consumed ``count`` messages.

    The consumer counts a message only after its listener has returned, which is after ``reader``'s event.
    """
    async with AdminClient(namesrv) as admin, asyncio.timeout(60):
        while True:
            await consumer.persist_offsets()
            stats = await admin.groups.examine_consume_stats(group, topic)
            if sum(offsets.consumer_offset for offsets in stats.offset_table.values()) == count:
                return
