"""LIST_REWINDS (190003): what the broker has handed out since a queue was set back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rewindmq.broker import limits
from rewindmq.broker.offsets import rewinds
from rewindmq.protocol.body.rewind import QueueRewind, Rewind, RewindList
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.header.admin import (
    DeleteSubscriptionGroupRequestHeader,
    DeleteTopicRequestHeader,
    ListRewindsRequestHeader,
)
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from tests.support.fixtures import RunScenario, simulated
from tests.support.peer import Peer
from tests.support.stage import SimStage

END = 10
MODES = [ResetMode.CLASSIC, ResetMode.SERVER, ResetMode.FENCED]


async def listed(peer: Peer, topic: str = "T") -> list[QueueRewind]:
    response = await peer.ask(RequestCode.LIST_REWINDS, ListRewindsRequestHeader("G", topic))
    return decode_body(response.require_success(), RewindList).queues


async def rewind_of(peer: Peer) -> Rewind:
    """The latest rewind of queue 0."""
    rewind = (await listed(peer))[0].rewind
    assert rewind is not None
    return rewind


async def runs_of(peer: Peer) -> list[tuple[str, int, int, int, bool]]:
    return [
        (run.client_id, run.first, run.next, run.asked, run.is_current)
        for run in (await rewind_of(peer)).runs
    ]


async def rewound(stage: SimStage, **options: Any) -> Peer:
    """A consumer at the end of queue 0, which commits 0."""
    peer = await stage.group_at(END, messages=END, **options)
    await peer.commit(0)
    return peer


@simulated()
async def test_a_group_that_only_moves_on_has_no_rewind(stage: SimStage) -> None:
    peer = await stage.group_at(3, queues=2, messages=END)
    await peer.commit(5)
    assert await listed(peer) == [QueueRewind(0, 5, END), QueueRewind(1, 3, END)]


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_begins_a_rewind(simulate: RunScenario, mode: ResetMode) -> None:
    async def scenario(stage: SimStage) -> None:
        peer = await stage.group_at(8, messages=END)
        await stage.peer("admin").targets(0)
        if mode is ResetMode.CLASSIC:
            (waiting,) = await listed(peer)
            assert (waiting.awaited, waiting.rewind) == (0, None)
            await peer.commit(0)
        (row,) = await listed(peer)
        assert (row.stored, row.max_offset, row.awaited) == (0, END, None)
        rewind = await rewind_of(peer)
        assert (rewind.number, rewind.old, rewind.target, rewind.start, rewind.end) == (1, 8, 0, 0, END)
        assert (rewind.handed_out, rewind.committed, rewind.passed, rewind.runs) == (0, 0, None, [])

    simulate(scenario, reset_mode=mode)


@simulated()
async def test_a_classic_reset_to_where_the_stored_offset_is_begins_a_rewind_when_it_is_committed(
    stage: SimStage,
) -> None:
    peer = await stage.group_at(0, messages=END)
    await stage.peer("admin").targets(0)
    await peer.commit(0)
    assert (await rewind_of(peer)).old == 0


@simulated(reset_mode=ResetMode.SERVER, profile=Profile.V53)
async def test_a_skip_is_no_rewind_and_ends_the_one_before(stage: SimStage) -> None:
    peer = await rewound(stage)
    await stage.peer("admin").targets(-1)
    assert (await listed(peer))[0].rewind is None


@simulated()
async def test_what_a_consumer_pulls_without_a_break_is_one_run(stage: SimStage) -> None:
    peer = await rewound(stage)
    await peer.stored()
    await peer.pull(0, count=4)
    assert await runs_of(peer) == [("c1", 0, 4, 0, True)]
    await peer.pull(4)
    assert await runs_of(peer) == [("c1", 0, END, 4, True)]
    # The next pull tells that the response has arrived, even while it is suspended.
    waiting = asyncio.create_task(peer.pull(END, hold_ms=5_000))
    await stage.world.sleep(1)
    assert await runs_of(peer) == [("c1", 0, END, END, True)]
    await stage.peer("producer").fill(1)
    await waiting
    assert await runs_of(peer) == [("c1", 0, END + 1, END, True)]
    assert (await rewind_of(peer)).handed_out == END + 1


@simulated()
async def test_a_consumer_that_takes_the_queue_over_again_begins_a_run(stage: SimStage) -> None:
    peer = await rewound(stage)
    await peer.pull(0, count=4)
    await peer.stored()
    await peer.pull(4)
    assert await runs_of(peer) == [("c1", 0, 4, 0, False), ("c1", 4, END, 4, True)]
    assert (await rewind_of(peer)).handed_out == END


@simulated()
async def test_the_end_of_a_run_is_noted_after_the_rewind_is_complete(stage: SimStage) -> None:
    peer = await rewound(stage)
    await peer.pull(0)
    await peer.pull(END)
    await peer.commit(END)
    assert not stage.broker.context.offsets.rewinds.open
    await peer.pull(END)
    assert await runs_of(peer) == [("c1", 0, END, END, True)]
    await peer.stored()
    assert await runs_of(peer) == [("c1", 0, END, END, False)]


@simulated()
async def test_a_closed_connection_ends_its_runs(stage: SimStage) -> None:
    peer = await rewound(stage)
    await peer.pull(0, count=4)
    await peer.client.close()
    await stage.world.sleep(1)
    assert await runs_of(stage.peer("admin")) == [("c1", 0, 4, 0, False)]


@simulated()
async def test_a_pull_that_was_suspended_before_the_rewind_is_no_part_of_it(stage: SimStage) -> None:
    peer = await stage.group_at(END, messages=END)
    old = asyncio.create_task(peer.pull(END, hold_ms=5_000))
    await stage.world.sleep(1)
    await peer.commit(0)
    await peer.pull(0, count=4)
    await stage.peer("producer").fill(1)
    await old
    assert await runs_of(peer) == [("c1", 0, 4, 0, True)]


@simulated()
async def test_a_pull_that_was_suspended_before_the_rewind_does_not_show_that_a_response_has_arrived(
    stage: SimStage,
) -> None:
    peer = await stage.group_at(END, messages=END)
    old = asyncio.create_task(peer.pull(END, hold_ms=5_000))
    await stage.world.sleep(1)
    await peer.commit(0)
    await peer.pull(0)
    await stage.peer("producer").fill(1)
    await old
    assert await runs_of(peer) == [("c1", 0, END, 0, True)]


@simulated()
async def test_the_own_commit_of_a_consumer_may_begin_a_rewind_that_knows_too_little(stage: SimStage) -> None:
    """It repairs a late commit, and the consumer goes on where it is: it loses nothing."""
    peer = await stage.group_at(END, messages=END)
    await stage.peer("admin").targets(0)
    await peer.commit(0)
    assert (await rewind_of(peer)).notes_all_pulls
    await peer.pull(0, count=8)
    await stage.peer("late").commit(6)
    await peer.commit(0)
    assert not (await rewind_of(peer)).notes_all_pulls
    await peer.pull(8)
    await peer.commit(8)
    assert (await rewind_of(peer)).passed == 8


@simulated()
async def test_a_late_commit_does_not_end_the_wait_for_the_target(stage: SimStage) -> None:
    peer = await stage.group_at(END, messages=END)
    await stage.peer("admin").targets(0)
    await peer.commit(7)
    (row,) = await listed(peer)
    assert (row.stored, row.awaited) == (7, 0)
    await peer.commit(0)
    assert (await rewind_of(peer)).notes_all_pulls


@pytest.mark.parametrize("slave_read_enable", [False, True])
def test_a_broker_whose_slaves_serve_pulls_does_not_know_all_of_them(
    simulate: RunScenario, slave_read_enable: bool
) -> None:
    async def scenario(stage: SimStage) -> None:
        peer = await stage.group_at(END, messages=END)
        await stage.peer("admin").targets(0)
        assert (await rewind_of(peer)).notes_all_pulls is not slave_read_enable

    simulate(scenario, reset_mode=ResetMode.FENCED, slave_read_enable=slave_read_enable)


@simulated()
async def test_two_consumers_have_a_run_each(stage: SimStage) -> None:
    first = await rewound(stage)
    second = stage.peer("c2")
    await second.heartbeat()
    await first.pull(0, count=6)
    await second.pull(3, count=3)
    await second.pull(6)
    assert await runs_of(first) == [("c1", 0, 6, 0, True), ("c2", 3, END, 6, True)]
    assert (await rewind_of(first)).handed_out == END


@simulated()
async def test_a_commit_above_what_was_handed_out_is_kept(stage: SimStage) -> None:
    peer = await rewound(stage)
    await peer.pull(0, count=4)
    await peer.commit(4)
    assert (await rewind_of(peer)).passed is None
    await peer.commit(9)
    # The redelivery's own commit moves back, and is no rewind of its own.
    await peer.commit(4)
    rewind = await rewind_of(peer)
    assert (rewind.number, rewind.passed, rewind.committed) == (1, 9, 9)


@simulated()
async def test_a_commit_that_moves_back_again_begins_another_rewind(stage: SimStage) -> None:
    peer = await rewound(stage)
    await peer.pull(0)
    await peer.commit(END)
    await peer.commit(3)
    rewind = await rewind_of(peer)
    assert (rewind.number, rewind.old, rewind.target, rewind.runs) == (2, END, 3, [])


@simulated()
async def test_a_redirected_pull_ends_the_run(stage: SimStage) -> None:
    peer = await rewound(stage)
    await peer.pull(0, count=4)
    assert (await peer.status(1_000))[0] == 21
    assert await runs_of(peer) == [("c1", 0, 4, 0, False)]


@pytest.mark.parametrize(
    "request_code", [RequestCode.DELETE_SUBSCRIPTIONGROUP, RequestCode.DELETE_TOPIC_IN_BROKER]
)
@simulated()
async def test_the_rewinds_of_a_deleted_group_or_topic_are_forgotten(
    stage: SimStage, request_code: RequestCode
) -> None:
    peer = await rewound(stage)
    header = (
        DeleteTopicRequestHeader("T")
        if request_code is RequestCode.DELETE_TOPIC_IN_BROKER
        else DeleteSubscriptionGroupRequestHeader("G", True, True)
    )
    (await peer.ask(request_code, header)).require_success()
    await peer.create_topic(write=1, read=1)
    assert [row.rewind for row in await listed(peer)] == [None]


@simulated()
async def test_an_unknown_topic_is_17(stage: SimStage) -> None:
    response = await stage.peer().ask(RequestCode.LIST_REWINDS, ListRewindsRequestHeader("G", "None"))
    assert (response.code, response.remark) == (17, "topic[None] not exist")


def test_the_oldest_rewind_makes_room_and_a_wide_reset_notes_its_first_queues(
    simulate: RunScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rewinds, "MAX_REWINDS", 3)
    monkeypatch.setattr(rewinds, "MAX_REWINDS_OF_RESET", 2)

    async def scenario(stage: SimStage) -> None:
        peer = await stage.group_at(5, queues=4, messages=END)
        await peer.targets(0)
        assert [row.rewind is not None for row in await listed(peer)] == [True, True, False, False]
        for queue_id in (2, 3):
            await peer.pull(0, queue_id=queue_id)  # Consumes the mark, until which commits are ignored.
            await peer.commit(4, queue_id=queue_id)
            await peer.commit(3, queue_id=queue_id)
        assert [row.rewind is not None for row in await listed(peer)] == [False, True, True, True]

    simulate(scenario, reset_mode=ResetMode.SERVER, profile=Profile.V53)


@simulated()
async def test_a_rewind_remembers_only_its_newest_runs(stage: SimStage) -> None:
    peer = await rewound(stage)
    for offset in range(END):
        await peer.stored()
        await peer.pull(offset, count=1)
    runs = await runs_of(peer)
    assert [run[1] for run in runs] == [*range(END - limits.MAX_RUNS_OF_REWIND, END)]
    assert (await rewind_of(peer)).handed_out == END
