"""A reset at a RocketMQ broker is previewed, watched, and proven."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import pytest

from rewindmq import (
    AdminClient,
    ConsumeConcurrentlyStatus,
    Message,
    MessageExt,
    Producer,
    PushConsumer,
    TopicConfig,
)
from rewindmq.client.admin.watched_reset.make_preview import make_preview
from rewindmq.client.admin.watched_reset.sample import take_sample
from rewindmq.client.admin.watched_reset.states import State
from rewindmq.client.admin.watched_reset.watch import ResetWatch, follow
from tools.interop.servers import RocketMQServer
from tools.interop.store_view import consumed, wait_dispatched
from tools.interop.versions import SERVER_4, SERVER_5

pytestmark = [pytest.mark.unlisted, pytest.mark.timeout(900)]

TOPIC, GROUP = "watched", "watched-readers"
QUEUES, COUNT = 2, 12
SECONDS: Final = 300.0


class Gate:
    """A listener that waits inside each delivery while the gate is closed."""

    def __init__(self) -> None:
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.delivered = 0
        self.changed = asyncio.Condition()

    async def listen(self, messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        await self.is_open.wait()
        async with self.changed:
            self.delivered += len(messages)
            self.changed.notify_all()
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    async def reached(self, count: int) -> None:
        async with asyncio.timeout(SECONDS), self.changed:
            await self.changed.wait_for(lambda: self.delivered >= count)


@pytest.mark.parametrize("release", [SERVER_4, SERVER_5])
async def test_a_reset_of_a_running_group_is_previewed_and_proven(release: str) -> None:
    server = await asyncio.to_thread(RocketMQServer, release)
    with server:
        namesrv, broker = server.namesrv_address, server.broker_address
        async with AdminClient(namesrv) as admin:
            config = TopicConfig(TOPIC, read_queue_nums=QUEUES, write_queue_nums=QUEUES)
            await admin.create_and_update_topic_config(broker, config)
            gate = Gate()
            async with Producer("watched-producer", namesrv) as producer:
                for number in range(COUNT):
                    await producer.send(Message(TOPIC, b"body %d" % number), timeout=SECONDS)
            await asyncio.to_thread(wait_dispatched, broker)
            consumer = PushConsumer(GROUP, namesrv, consume_from="first")
            consumer.subscribe(TOPIC)
            consumer.register_message_listener(gate.listen)
            async with consumer:
                await gate.reached(COUNT)
                async with asyncio.timeout(SECONDS):
                    while await asyncio.to_thread(consumed, [broker], TOPIC, GROUP) < COUNT:
                        await consumer.persist_offsets()
                await _watched(admin, gate)
    assert gate.delivered == 2 * COUNT


async def _watched(admin: AdminClient, gate: Gate) -> None:
    preview = await make_preview(admin, TOPIC, GROUP, 0)
    assert (preview.redelivered, preview.skipped, preview.obstacles) == (COUNT, 0, ())
    assert all(row.consumer is not None and row.target == row.min_offset for row in preview.queues)
    gate.is_open.clear()
    before = await take_sample(admin, TOPIC, GROUP, [row.queue for row in preview.queues])
    began = admin.runtime.clock.monotonic()
    accepted = await admin.reset_or_write(TOPIC, GROUP, 0)
    watch = ResetWatch(before, accepted.offsets, began)
    states: dict[State, int] = {}
    async for change in follow(admin, TOPIC, GROUP, watch, patience=SECONDS):
        states[change.state] = states.get(change.state, 0) + 1
        # Each queue's redelivery was seen: let it go on.
        if states.get(State.REDELIVERING) == QUEUES:
            gate.is_open.set()
    assert watch.is_proven, [(item.state, item.reason) for item in watch.queues]
