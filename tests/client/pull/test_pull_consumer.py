"""The pull consumer and interval replays with real servers under virtual time (docs/spec/client.md C.13)."""

from __future__ import annotations

import pytest

from rewindmq import (
    ClientError,
    PullStatus,
)
from rewindmq.protocol.profile import Profile
from rewindmq.race.sim.world import EPOCH_MS
from tests.support.fixtures import played
from tests.support.stage import SimStage

ALL = list(Profile)


@pytest.mark.parametrize("profile", ALL)
@played()
async def test_a_pull_consumer_keeps_queues_it_does_not_pull(stage: SimStage, profile: Profile) -> None:
    """The 120 s of docs/spec/client.md C.5 apply to push consumers."""
    await stage.create_topic(queues=2)
    consumer = await stage.pull_consumer()
    consumer.register_topic("T")
    await stage.world.sleep(60)
    mine = dict(consumer.rebalancer.process_queues)
    assert len(mine) == 2
    await stage.world.sleep(150)
    assert consumer.rebalancer.process_queues == mine
    assert not any(process_queue.dropped for process_queue in mine.values())


@pytest.mark.scenario("C19", "v42", "v49", "v53")
@pytest.mark.parametrize("profile", ALL)
@played()
async def test_C19_a_blocking_pull_at_the_end_waits_20_to_25_seconds(
    stage: SimStage, profile: Profile
) -> None:
    """At the end of a queue without traffic: NO_NEW_MSG after the suspension, and the same next offset."""
    await stage.create_topic(queues=1)
    await stage.fill(10)
    consumer = await stage.pull_consumer()
    (queue,) = await consumer.fetch_subscribe_message_queues("T")
    start = stage.world.now
    result = await consumer.pull_block_if_not_found(queue, "*", 10, 32)
    assert result.status is PullStatus.NO_NEW_MSG
    assert result.next_begin_offset == 10
    assert 20 <= stage.world.now - start <= 25.1


@pytest.mark.scenario("C20", "v49", "v53")
@pytest.mark.parametrize(("profile", "hi"), [(Profile.V42, 99), (Profile.V49, 99), (Profile.V53, 100)])
@played()
async def test_C20_the_search_after_the_last_message_and_what_a_replay_makes_of_it(
    stage: SimStage, profile: Profile, hi: int
) -> None:
    """A loop up to search(after the last) misses the last message under NEAREST; replay does not."""
    await stage.create_topic(queues=1)
    for number in range(100):
        await stage.fill(1, first=number)
        await stage.world.sleep(0.01)
    consumer = await stage.pull_consumer()
    (queue,) = await consumer.fetch_subscribe_message_queues("T")
    end = EPOCH_MS + round(stage.world.now * 1000) + 1000
    assert await consumer.search_offset(queue, end) == hi
    naive: list[bytes] = []
    offset = 0
    while offset < hi:
        result = await consumer.pull(queue, "*", offset, 32)
        naive += [message.body for message in result.messages if message.queue_offset < hi]
        offset = result.next_begin_offset
    assert len(naive) == hi
    replayed = [message.body async for message in consumer.replay("T", EPOCH_MS, end)]
    assert replayed == [b"%d" % number for number in range(100)]


@pytest.mark.parametrize("profile", ALL)
@played()
async def test_a_replay_takes_exactly_the_interval(stage: SimStage, profile: Profile) -> None:
    await stage.create_topic(queues=2)
    stored: dict[bytes, int] = {}
    for number in range(30):
        await stage.fill(1, first=number)
        await stage.world.sleep(0.1 if number % 3 == 0 else 0)
    consumer = await stage.pull_consumer()
    for queue in await consumer.fetch_subscribe_message_queues("T"):
        for message in (await consumer.pull(queue, "*", 0, 32)).messages:
            stored[message.body] = message.store_timestamp
    begin, end = stored[b"7"], stored[b"20"]
    expected = sorted(body for body, when in stored.items() if begin <= when <= end)
    replayed = sorted({message.body async for message in consumer.replay("T", begin, end)})
    assert replayed == expected
    assert [message async for message in consumer.replay("T", end + 60_000, end + 90_000)] == []


@played()
async def test_the_four_outcomes_of_a_pull(stage: SimStage) -> None:
    await stage.create_topic(queues=1)
    await stage.fill(10)
    consumer = await stage.pull_consumer()
    (queue,) = await consumer.fetch_subscribe_message_queues("T")
    found = await consumer.pull(queue, "*", 4, 3)
    assert (found.status, found.next_begin_offset) == (PullStatus.FOUND, 7)
    assert [message.body for message in found.messages] == [b"4", b"5", b"6"]
    none = await consumer.pull(queue, "NoSuchTag", 0, 32)
    assert (none.status, none.next_begin_offset) == (PullStatus.NO_MATCHED_MSG, 10)
    assert (await consumer.pull(queue, "*", 10, 32)).status is PullStatus.NO_NEW_MSG
    beyond = await consumer.pull(queue, "*", 99, 32)
    assert (beyond.status, beyond.next_begin_offset) == (PullStatus.OFFSET_ILLEGAL, 10)
    assert (await consumer.min_offset(queue), await consumer.max_offset(queue)) == (0, 10)
    with pytest.raises(ClientError, match="offset < 0"):
        await consumer.pull(queue, "*", -1, 32)
    with pytest.raises(ClientError, match="maxNums <= 0"):
        await consumer.pull(queue, "*", 0, 0)
