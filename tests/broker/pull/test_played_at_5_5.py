"""v53 step by step, with the values seen at RocketMQ 5.5.0 (docs/spec/broker.md B.18).

``tests/interop/test_played_at_5_5.py`` sends the same requests to both.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest

from rewindmq.protocol.message.record import decode_records
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from tests.support.answers import body_of, remark_of
from tests.support.fixtures import simulated
from tests.support.peer import Peer
from tests.support.stage import SimStage

V53: Final[dict[str, Any]] = {"profile": Profile.V53, "reset_mode": ResetMode.SERVER}


async def with_20(stage: SimStage) -> Peer:
    """Group G in topic T, whose queue 0 of two has 20 messages."""
    peer = stage.peer()
    await peer.create_topic(write=2, read=2)
    await peer.heartbeat()
    await peer.fill(20)
    return peer


async def committed(peer: Peer, offset: int, **where: Any) -> tuple[int, str | None]:
    answer = await peer.commit(offset, **where)
    return answer.code, answer.remark


@simulated(**V53)
async def test_steps_1_to_4_any_offset_that_is_not_negative_is_stored(stage: SimStage) -> None:
    peer = await with_20(stage)
    for offset, queue_id in ((10, 0), (3, 0), (1000, 0), (7, 99)):
        assert await committed(peer, offset, queue_id=queue_id) == (0, None)
        assert await peer.stored_offset(queue_id=queue_id) == offset
    for offset, queue_id in ((-5, 0), (7, -1)):
        refused = f"queueId {queue_id} and commitOffset {offset} must not be negative"
        assert await committed(peer, offset, queue_id=queue_id) == (29, refused)
    assert await peer.stored_offset() == 1000


@simulated(**V53)
async def test_steps_5_and_6_group_and_topic_must_exist(stage: SimStage) -> None:
    peer = await with_20(stage)
    for topic in ("T", "Nope"):
        assert await committed(peer, 7, topic=topic, group="No") == (26, "Group No not exist!")
    assert await committed(peer, 7, topic="Nope") == (17, "Topic Nope not exist!")
    assert stage.broker.context.offsets.table.groups_of("Nope") == []


@simulated(**V53)
async def test_steps_7_to_10_a_mark_until_the_first_pull(stage: SimStage) -> None:
    peer = await with_20(stage)
    await peer.commit(15)
    await peer.targets(0)
    assert await committed(peer, 15) == (0, "Offset has been previously reset")
    assert [await peer.stored_offset() for _ in range(3)] == [0, 0, 0]
    assert await peer.status(15) == (21, "OFFSET_RESET", 0)
    assert await peer.status(15) == (0, "FOUND", 20)
    assert await committed(peer, 15) == (0, None)
    assert await peer.stored_offset() == 15


@pytest.mark.parametrize(
    ("offset", "queue_id", "seen"),
    [
        (20, 0, (19, "OFFSET_OVERFLOW_ONE", 20)),
        (21, 0, (21, "OFFSET_OVERFLOW_BADLY", 20)),
        (1000, 0, (21, "OFFSET_OVERFLOW_BADLY", 20)),
        (-1, 0, (21, "OFFSET_TOO_SMALL", 0)),
        (-100, 0, (21, "OFFSET_TOO_SMALL", 0)),
        (0, 1, (19, "NO_MESSAGE_IN_QUEUE", 0)),
        (5, 1, (21, "NO_MESSAGE_IN_QUEUE", 0)),
        (-1, 1, (21, "NO_MESSAGE_IN_QUEUE", 0)),
    ],
)
@simulated(**V53)
async def test_steps_11_to_14_pulls_at_the_bounds(
    stage: SimStage, offset: int, queue_id: int, seen: tuple[int, str, int]
) -> None:
    """The fields are those of a client that reads them; the queue's bounds are always among them."""
    peer = await with_20(stage)
    assert await peer.status(offset, queue_id=queue_id) == seen
    code, remark, next_offset = seen
    answer = await peer.pull(offset, queue_id=queue_id)
    assert (answer.code, answer.remark) == (code, remark)
    assert answer.ext == {
        "suggestWhichBrokerId": 0,
        "nextBeginOffset": next_offset,
        "minOffset": 0,
        "maxOffset": 0 if queue_id else 20,
    }


@simulated(**V53)
async def test_steps_11_and_12_only_a_pull_at_the_maximum_is_suspended(stage: SimStage) -> None:
    peer = await with_20(stage)
    before = stage.runtime.clock.monotonic()
    assert (await peer.status(21, hold_ms=3_000))[0] == 21
    assert stage.runtime.clock.monotonic() == before
    held = asyncio.ensure_future(peer.status(20, hold_ms=3_000))
    await stage.at(2.9)
    assert not held.done()
    assert await held == (19, "OFFSET_OVERFLOW_ONE", 20)


@simulated(**V53)
async def test_steps_15_to_19_permissions_queues_topics_and_groups(stage: SimStage) -> None:
    peer = await with_20(stage)
    await peer.create_topic("ReadOnly", 2, 2, perm=4)
    await peer.create_topic("WriteOnly", 2, 2, perm=2)
    await peer.fill(1, "ReadOnly")
    assert (await peer.status(0, topic="ReadOnly"))[:2] == (0, "FOUND")
    forbidden = await peer.pull(0, "WriteOnly")
    assert (forbidden.code, forbidden.remark) == (16, "the topic[WriteOnly] pulling message is forbidden")
    for queue_id in (99, -1):
        illegal = await peer.pull(0, queue_id=queue_id)
        assert illegal.code == 29
        words = f"queueId[{queue_id}] is illegal, topic:[T] topicConfig.readQueueNums:[2] consumer:[/10."
        assert remark_of(illegal).startswith(words)
    assert (await peer.pull(0, "Nope")).code == 17
    assert (await peer.status(0, group="New"))[:2] == (0, "FOUND")
    assert await committed(peer, 1, group="New") == (0, None)


@pytest.mark.parametrize(("count", "found"), [(33, 20), (1000, 20), (0, 1), (-1, 1)])
@simulated(**V53)
async def test_step_20_counts_of_messages(stage: SimStage, count: int, found: int) -> None:
    answer = await (await with_20(stage)).pull(0, count=count)
    assert len(decode_records(body_of(answer))) == found
