"""Each queue is delivered in order, without gaps, whatever listeners return and whichever queues move."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewindmq import ConsumeOrderlyContext, ConsumeOrderlyStatus, MessageExt, PushConsumer
from rewindmq.protocol.profile import Profile
from rewindmq.race.sim import World
from tests.client.push.orderly_props import consume
from tests.support.fixtures import RunScenario
from tests.support.properties import few_and_all
from tests.support.stage import SimStage

QUEUES, MESSAGES = 3, 40
VERDICTS: list[ConsumeOrderlyStatus | Literal["raise"] | None] = [*ConsumeOrderlyStatus, None, "raise"]


class Watcher:
    """A listener of all consumers that returns random results and checks the order.

    Deliveries of one queue never overlap. A batch starts at or before the end of the furthest batch before
    it. Violations go into ``faults``, because an exception would be a result.
    """

    def __init__(self, world: World, chance: random.Random) -> None:
        self._world = world
        self._chance = chance
        self._running: set[int] = set()
        self.ends = [0] * QUEUES
        self.seen: list[set[int]] = [set() for _ in range(QUEUES)]
        self.is_calm = False
        self.faults: list[tuple[int, list[int], int, bool]] = []

    async def __call__(
        self, messages: Sequence[MessageExt], context: ConsumeOrderlyContext
    ) -> ConsumeOrderlyStatus | None:
        queue = context.message_queue.queue_id
        if context.message_queue.topic != "T":
            return ConsumeOrderlyStatus.SUCCESS
        offsets = [message.queue_offset for message in messages]
        is_whole = offsets == list(range(offsets[0], offsets[-1] + 1))
        if queue in self._running or not is_whole or offsets[0] > self.ends[queue]:
            self.faults.append((queue, offsets, self.ends[queue], queue in self._running))
        self._running.add(queue)
        try:
            await self._world.sleep(self._chance.choice([0, 0, 0.01, 0.3]))
        finally:
            # A consumer that stops cancels running listeners.
            self._running.discard(queue)
        self.ends[queue] = max(self.ends[queue], offsets[-1] + 1)
        self.seen[queue].update(offsets)
        if self.is_calm:
            return ConsumeOrderlyStatus.SUCCESS
        context.auto_commit = self._chance.random() < 0.7
        context.suspend_current_queue_time_millis = 10
        verdict = self._chance.choice(VERDICTS)
        if verdict == "raise":
            raise ValueError("the listener's own")
        return verdict


async def _disturb(
    stage: SimStage, consumer: PushConsumer, chance: random.Random, *, breaks_locks: bool
) -> None:
    """Let a consumer give up and take back a queue, lose its lock in memory, or lose it at the broker.

    If the broker has forgotten a lock, a consumer that joins before the next refresh gets it, in any release.
    """
    mine = [queue for queue in consumer.process_queues if queue.topic == "T"]
    if not mine:
        return
    queue = chance.choice(mine)
    match chance.randrange(3 if breaks_locks else 2):
        case 0:
            await consumer.rebalancer.remove_process_queue(queue)
            consumer.instance.rebalance_service.wake()
        case 1:
            consumer.process_queues[queue].locked = False  # type: ignore[attr-defined]
        case _:
            stage.brokers["broker-a"].context.clients.queue_locks.unlock("G", consumer.client_id, [queue])


async def _scene(stage: SimStage, chance: random.Random, batch: int) -> None:
    await stage.create_topic(queues=QUEUES)
    watcher = Watcher(stage.world, chance)
    options: dict[str, Any] = {"consume_message_batch_max_size": batch}
    first = await consume(stage, watcher, name="c1", **options)
    consumers = [first]
    for half in range(2):
        await stage.fill(MESSAGES // 2, first=half * MESSAGES // 2)
        for _ in range(6):
            await stage.world.sleep(chance.choice([0.2, 1, 7]))
            await _disturb(stage, chance.choice(consumers), chance, breaks_locks=half == 1)
        if half == 0:
            consumers.append(await consume(stage, watcher, name="c2", **options))
    watcher.is_calm = True
    await consumers[1].shutdown()
    await stage.world.sleep(60)
    # The last results may have been successes that commit nothing.
    await stage.fill(1, first=MESSAGES)
    await stage.world.sleep(10)
    assert watcher.faults == []
    assert watcher.seen == [set(range(MESSAGES + 1))] * QUEUES
    assert stage.stored() == dict.fromkeys(range(QUEUES), MESSAGES + 1)


@pytest.mark.parametrize("examples", few_and_all(2, 4))
@pytest.mark.parametrize("profile", [Profile.V49, Profile.V53, Profile.EPOCH])
def test_orderly_delivery_is_in_order_and_complete_whatever_happens(
    play: RunScenario, profile: Profile, examples: int
) -> None:
    @settings(max_examples=examples)
    @given(seed=st.integers(1, 2**32), batch=st.sampled_from([1, 3, 8]))
    def holds(seed: int, batch: int) -> None:
        chance = random.Random(seed)
        play(lambda stage: _scene(stage, chance, batch), profile=profile, seed=seed)

    holds()
