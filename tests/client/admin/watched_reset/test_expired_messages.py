"""Messages that have expired cannot come again: previews do not count them, and watches miss none of them."""

from __future__ import annotations

from typing import Any

import pytest

from rewindmq import MessageQueue
from rewindmq.client.admin.watched_reset.make_preview import make_preview
from rewindmq.client.admin.watched_reset.run import ResetVerdict, run_watched
from rewindmq.protocol.profile import RELEASES, Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.watch.verdict.states import State
from tests.client.admin.support import GROUP, TOPIC, new_consumer
from tests.support.fixtures import played
from tests.support.stage import SimStage

QUEUE = MessageQueue(TOPIC, "broker-a", 0)
# Files of a few messages, which are deleted once there is a next one.
RETENTION: dict[str, Any] = {
    "file_reserved_time": 0,
    "delete_when": ";".join(map(str, range(24))),
    "store": {"mapped_file_size_commit_log": 4_096, "mapped_file_size_consume_queue": 200},
}

# The first three are in the default group.
CASES = [
    (Profile.V49, ResetMode.CLASSIC),
    (Profile.V49, ResetMode.SERVER),
    (Profile.V53, ResetMode.SERVER),
    (Profile.V42, ResetMode.CLASSIC),
    (Profile.V42, ResetMode.SERVER),
    (Profile.V53, ResetMode.CLASSIC),
    *((profile, ResetMode.FENCED) for profile in RELEASES),
]


async def expired(stage: SimStage, *, left: int) -> None:
    """Let the group consume 20 messages, and all but ``left`` of them expire."""
    await stage.create_topic(TOPIC, 1)
    await stage.create_topic("Other", 1)
    await stage.send(20 - left, TOPIC, gap=0.1)
    await stage.send(60, "Other", gap=0.0)
    await stage.world.sleep(40)
    await stage.send(left, TOPIC, gap=0.1)
    await stage.world.sleep(90)


@pytest.mark.parametrize(
    ("profile", "mode"), [*CASES[:3], *(pytest.param(*case, marks=pytest.mark.slow) for case in CASES[3:])]
)
@pytest.mark.parametrize("left", [0, 3])
@played(**RETENTION)
async def test_a_preview_counts_messages_that_exist_and_a_watch_misses_no_other(
    stage: SimStage, profile: Profile, mode: ResetMode, left: int
) -> None:
    async with new_consumer(stage):
        await expired(stage, left=left)
        assert stage.stored_offset(QUEUE, GROUP) == 20
        admin = await stage.admin()
        preview = await make_preview(admin, TOPIC, GROUP, 0, mode=mode)
        (row,) = preview.queues
        assert (row.min_offset, row.max_offset, row.redelivered) == (20 - left, 20, left)
        stage.consumed.clear()
        items = [item async for item in run_watched(admin, TOPIC, GROUP, 0, mode=mode)]
        (verdict,) = [item for item in items if isinstance(item, ResetVerdict)]
        assert sorted({offset for _, offset in stage.consumed}) == [*range(20 - left, 20)]
        assert verdict.state is not State.LOST, [item.reason for item in verdict.queues]
        if not left:
            assert verdict.state is State.PROVEN, [item.reason for item in verdict.queues]
