"""Server-side and fenced resets of groups of lite pull consumers.

Specification: docs/spec/client.md C.14, docs/spec/races.md E.16 S6.
"""

from __future__ import annotations

from typing import Any

import pytest

from rewindmq import ConsumeFromWhere, LitePullConsumer
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import RELEASES, Profile
from rewindmq.protocol.reset_mode import ResetMode
from tests.client.race_props import reset
from tests.support.fixtures import played
from tests.support.stage import SimStage

Q0 = MessageQueue("T", "broker-a", 0)
FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET


def lite(stage: SimStage, **options: Any) -> LitePullConsumer:
    consumer = LitePullConsumer(
        "G",
        stage.namesrv,
        runtime=stage.new_runtime(),
        profile=stage.profile,
        consume_from_where=FIRST,
        **options,
    )
    consumer.subscribe("T")
    return consumer


async def consumed(stage: SimStage, consumer: LitePullConsumer, count: int = 10) -> None:
    """Wait until everything was polled, and the broker has stored it."""
    await stage.create_topic(queues=1)
    await stage.fill(count)
    await consumer.start()
    left = count
    while left:
        left -= len(await consumer.poll())
    await consumer.commit([Q0], persist=True)
    await stage.until(lambda: stage.stored() == {0: count})


async def offsets(consumer: LitePullConsumer, seconds: int) -> list[int]:
    """Return the offsets polled until nothing came for ``seconds``."""
    got: list[int] = []
    while messages := await consumer.poll(seconds * 1000):
        got += [message.queue_offset for message in messages]
    return got


@pytest.mark.parametrize("profile", RELEASES)
@played(reset_mode=ResetMode.SERVER)
async def test_S6_a_server_reset_is_overwritten_until_something_is_polled(
    stage: SimStage, profile: Profile
) -> None:
    """The pulls go to the target, but the commits do not: a consumer that dies now loses the reset."""
    consumer = lite(stage, instance_name="a")
    await consumed(stage, consumer)
    await reset(stage)
    assert stage.stored() == {0: 0}
    await stage.until(lambda: stage.stored() == {0: 10}, seconds=30)
    # The pulls have moved: messages have arrived, but no poll has taken them.
    await stage.until(lambda: len(consumer.requests) == 1, seconds=30)
    await consumer.shutdown()
    assert stage.stored() == {0: 10}
    async with lite(stage, instance_name="b") as successor:
        assert await offsets(successor, 30) == []


@pytest.mark.parametrize("profile", RELEASES)
@played(reset_mode=ResetMode.SERVER)
async def test_a_server_reset_heals_when_the_application_polls(stage: SimStage, profile: Profile) -> None:
    consumer = lite(stage, instance_name="a")
    await consumed(stage, consumer)
    await reset(stage)
    assert await offsets(consumer, 30) == [*range(10)]
    await consumer.shutdown()
    assert stage.stored() == {0: 10}


@pytest.mark.parametrize("mode", ["subscribe", "assign"])
@played(profile=Profile.EPOCH, reset_mode=ResetMode.FENCED)
async def test_a_fenced_reset_is_kept_by_a_consumer_that_knows_epochs(stage: SimStage, mode: str) -> None:
    """The queue restarts at once; messages and progress from before are discarded."""
    consumer = lite(stage, instance_name="a")
    if mode == "assign":
        consumer = LitePullConsumer("G", stage.namesrv, runtime=stage.new_runtime(), profile=stage.profile)
        consumer.assign([Q0])
    await consumed(stage, consumer)
    await stage.fill(5, first=10)
    await stage.until(lambda: len(consumer.requests) == 1)
    consumer.pause([Q0])
    await reset(stage)
    await stage.until(lambda: len(stage.events.at(Point.QUEUE_RESTARTED, offset=0, epoch=1)) == 1, seconds=2)
    consumer.commit_sync()
    await stage.world.sleep(12)
    # Neither the earlier poll nor later persists have undone the reset, and the pause stays.
    assert stage.stored() == {0: 0}
    assert await consumer.poll(0) == []
    consumer.resume([Q0])
    assert await offsets(consumer, 3) == [*range(15)]
    await stage.world.sleep(6)
    await consumer.poll(0)
    await stage.until(lambda: stage.stored() == {0: 15}, seconds=6)
    await consumer.shutdown()


@played(profile=Profile.EPOCH, reset_mode=ResetMode.FENCED)
async def test_a_seek_in_a_queue_that_was_reset_before_goes_to_its_offset(stage: SimStage) -> None:
    """The queue is assigned, and sought before its first pull; older resets do not matter."""
    before = lite(stage, instance_name="a")
    await consumed(stage, before)
    await before.shutdown()
    await reset(stage)
    consumer = LitePullConsumer("G", stage.namesrv, runtime=stage.new_runtime(), profile=stage.profile)
    consumer.assign([Q0])
    async with consumer:
        await consumer.seek(Q0, 7)
        assert await offsets(consumer, 3) == [7, 8, 9]
        await consumer.commit([Q0], persist=True)
        await stage.until(lambda: stage.stored() == {0: 10}, seconds=1)


@pytest.mark.parametrize("profile", RELEASES)
@played(reset_mode=ResetMode.FENCED)
async def test_a_client_without_epochs_cannot_undo_a_fenced_reset(stage: SimStage, profile: Profile) -> None:
    """Its earlier commits are refused until its pull has been redirected to the target."""
    consumer = lite(stage, instance_name="a")
    await consumed(stage, consumer)
    await reset(stage)
    assert await offsets(consumer, 30) == [*range(10)]
    # A poll notes the progress.
    await consumer.poll(0)
    await consumer.shutdown()
    assert stage.stored() == {0: 10}
