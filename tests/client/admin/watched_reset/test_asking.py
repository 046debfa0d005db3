"""Queues are asked several at a time, never more than the limit."""

from __future__ import annotations

import asyncio

import pytest

from rewindmq.client.admin.asking import AT_ONCE, ask_each
from rewindmq.client.admin.watched_reset.make_preview import make_preview
from rewindmq.race.sim import World
from tests.client.admin.support import GROUP, TOPIC
from tests.support.fixtures import played
from tests.support.stage import SimStage


def test_the_answers_are_in_the_order_of_the_keys() -> None:
    world = World()

    async def answer(key: int) -> int:
        await world.sleep(1.0 / (1 + key))
        return -key

    assert world.run(ask_each(range(50), answer, at_once=7)) == [-key for key in range(50)]
    # Seven at a time: the longest wait is a second, and the seven places share the rest.
    assert 1.0 <= world.now < sum(1.0 / (1 + key) for key in range(50)) / 2


def test_no_more_are_asked_at_a_time_than_the_limit() -> None:
    world, running, most = World(), 0, 0

    async def answer(key: int) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await world.sleep(1.0)
        running -= 1

    world.run(ask_each(range(3 * AT_ONCE), answer))
    assert most == AT_ONCE
    assert world.now == 3.0


def test_the_first_failure_is_raised_and_ends_the_others() -> None:
    world = World()
    cancelled: list[int] = []

    async def answer(key: int) -> None:
        try:
            await world.sleep(1.0 if key == 2 else 60.0)
        except asyncio.CancelledError:
            cancelled.append(key)
            raise
        raise ValueError(key)

    with pytest.raises(ValueError, match="2"):
        world.run(ask_each(range(9), answer, at_once=4))
    assert world.now == 1.0
    # Tasks of a group are cancelled in any order.
    assert sorted(cancelled) == [0, 1, 3]


@played()
async def test_a_preview_asks_for_many_queues_at_the_same_time(stage: SimStage) -> None:
    queues = 256
    await stage.create_topic(TOPIC, queues)
    for queue_id in range(queues):
        stage.brokers["broker-a"].context.offsets.table.commit(GROUP, TOPIC, queue_id, 0)
    admin = await stage.admin()
    began = stage.world.now
    preview = await make_preview(admin, TOPIC, GROUP, 0)
    assert len(preview.queues) == queues
    # An answer takes up to 2 ms, and each queue needs two: 32 at a time take eight rounds of both.
    assert stage.world.now - began < 0.05
