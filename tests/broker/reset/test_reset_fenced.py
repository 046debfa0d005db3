"""222 under mode fenced: the epoch goes up with the offset, and nothing of an older epoch is stored again."""

from __future__ import annotations

import asyncio
import errno
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rewindmq.broker import limits
from rewindmq.broker.offsets import fencing
from rewindmq.broker.offsets.flush import ResetPlan
from rewindmq.broker.store.files.disk import OsDisk
from rewindmq.broker.store.tables.consumer_offset import OffsetChanges
from rewindmq.protocol.body.fenced_commit import FencedCommit, FencedCommitList
from rewindmq.protocol.body.group import SubscriptionGroupConfig
from rewindmq.protocol.body.heartbeat import MessageModel
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.header.admin import (
    DeleteSubscriptionGroupRequestHeader,
    ListFencedCommitsRequestHeader,
)
from rewindmq.protocol.header.offset import OffsetFencedResponseHeader
from rewindmq.protocol.header.pull import PullMessageResponseHeader
from rewindmq.protocol.header.reset import NotifyQueueResetRequestHeader
from rewindmq.protocol.points import Point
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.sim.world import EPOCH_MS
from tests.support.answers import remark_of
from tests.support.fixtures import RunScenario, simulated
from tests.support.peer import Peer
from tests.support.stage import ServerStage, SimStage

TO_THE_END = -1
FENCED: dict[str, Any] = {"reset_mode": ResetMode.FENCED}
FENCED_CODE = ResponseCode.OFFSET_FENCED
NOTICE = RequestCode.NOTIFY_QUEUE_RESET


async def listed(peer: Peer, group: str | None = None, topic: str | None = None) -> list[FencedCommit]:
    response = await peer.ask(RequestCode.LIST_FENCED_COMMITS, ListFencedCommitsRequestHeader(group, topic))
    body = decode_body(response.require_success(), FencedCommitList)
    assert body.total >= len(body.commits)
    return body.commits


async def epoch_of_pull(peer: Peer, offset: int, **options: Any) -> tuple[int, int, int | None]:
    """Code, next offset and epoch of a pull."""
    response = await peer.pull(offset, **options)
    header = response.decode_header(PullMessageResponseHeader)
    return response.code, header.next_begin_offset, header.epoch


# The reset itself.


@pytest.mark.parametrize("online", [True, False])
@simulated(**FENCED)
async def test_offset_and_epoch_change_together_with_or_without_a_consumer_online(
    stage: SimStage, online: bool
) -> None:
    peer = await stage.group_at(80, queues=2)
    if not online:
        await peer.client.close()
        await stage.at(3.0)
    admin = stage.peer("admin")
    assert await admin.targets(EPOCH_MS) == {0: 0, 1: 0}
    assert [await admin.record(queue_id) for queue_id in range(2)] == [(0, 1), (0, 1)]
    assert await admin.targets(TO_THE_END) == {0: 100, 1: 100}
    assert await admin.record() == (100, 2)
    await stage.at(5.0)
    assert peer.count(220) == 0


@pytest.mark.parametrize(("write", "read"), [(8, 4), (4, 8)])
@simulated(**FENCED)
async def test_D20_D21_every_queue_there_is_gets_its_epoch(stage: SimStage, write: int, read: int) -> None:
    peer = await stage.group_at(1, queues=4, messages=1, write=write, read=read)
    assert await peer.targets(EPOCH_MS) == dict.fromkeys(range(8), 0)
    assert [await peer.record(queue_id) for queue_id in range(8)] == [(0, 1)] * 8


@simulated(**FENCED)
async def test_without_force_only_queues_that_move_back_are_reset(stage: SimStage) -> None:
    peer = await stage.group_at(0, queues=3, messages=50)
    await peer.commit(20, queue_id=1)
    await peer.commit(50, queue_id=2)
    # The last message's time; queue 3 has none, and no offset either.
    await peer.create_topic(write=4, read=4)
    assert await peer.targets(EPOCH_MS, force=False) == {0: 0, 1: 0, 2: 0}
    assert [(await peer.record(queue_id))[1] for queue_id in range(3)] == [0, 1, 1]
    assert await peer.targets(TO_THE_END, force=False) == {0: 0, 1: 0, 2: 0}
    assert [(await peer.record(queue_id))[1] for queue_id in range(3)] == [0, 1, 1]
    assert stage.broker.context.offsets.table.query("G", "T", 3) == -1


@simulated(**FENCED)
async def test_one_queue_by_offset_or_time(stage: SimStage) -> None:
    peer = await stage.group_at(50, queues=3)
    assert await peer.targets(0, queue_id=1, offset=7) == {1: 7}
    assert await peer.targets(EPOCH_MS, queue_id=2) == {2: 0}
    assert await peer.targets(TO_THE_END, queue_id=2, force=False) == {2: 0}
    assert [await peer.record(queue_id) for queue_id in range(3)] == [(50, 0), (7, 1), (0, 1)]


@simulated(**FENCED)
async def test_what_the_tool_of_5_x_sends_for_one_queue_is_a_reset(stage: SimStage) -> None:
    peer = await stage.group_at(50, queues=2)
    admin = stage.peer("admin")
    for epoch, offset in ((1, 10), (2, 70), (3, 70)):
        await admin.commit(offset)
        assert await admin.targets(0, queue_id=0, offset=offset, force=False) == {0: offset}
        assert await peer.record() == (offset, epoch)
        assert (await peer.commit(50, epoch=epoch - 1)).code == FENCED_CODE


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"queue_id": 0, "offset": 101}, "Target offset 101 not in consume queue range [0-100]"),
        ({"queue_id": 0, "offset": -2}, "Target offset -2 not in consume queue range [0-100]"),
        ({"queue_id": 1}, "queueId 1: topic T has 1 queues here"),
        ({"offset": 7}, "offset 7 is given without a queueId to apply it to"),
    ],
)
@simulated(**FENCED)
async def test_a_reset_of_an_unknown_queue_or_offset_changes_nothing(
    stage: SimStage, fields: dict[str, Any], says: str
) -> None:
    peer = await stage.group_at(50)
    response = await peer.reset(0, **fields)
    assert (response.code, response.remark) == (1, says)
    assert await peer.record() == (50, 0)


@simulated(**FENCED)
async def test_unknown_topics_and_groups_and_topics_without_queues(stage: SimStage) -> None:
    peer = await stage.group_at(50)
    unknown = await peer.reset(0, "Nope")
    assert (unknown.code, unknown.remark) == (17, "Topic Nope does not exist")
    nobody = await peer.reset(0, group="Nobody")
    assert (nobody.code, nobody.remark) == (26, "Group Nobody does not exist")
    await peer.create_topic("Empty", write=0, read=0)
    none = await peer.reset(0, "Empty")
    assert (none.code, none.remark) == (1, "No queues to reset.")


@simulated(**FENCED)
async def test_a_group_that_has_offsets_and_no_settings_is_known(stage: SimStage) -> None:
    peer = await stage.group_at(50)
    await peer.commit(9, group="Tool")
    assert await peer.targets(EPOCH_MS, group="Tool") == {0: 0}
    assert await peer.record(group="Tool") == (0, 1)


@simulated(**FENCED)
async def test_an_online_broadcasting_group_is_refused(stage: SimStage) -> None:
    peer = await stage.group_at(50)
    await peer.heartbeat(model=MessageModel.BROADCASTING)
    response = await peer.reset(0)
    assert response.code == 1
    assert remark_of(response).startswith("group G is broadcasting: each consumer stores its own offsets")


@simulated(**FENCED)
async def test_broadcasting_consumers_that_join_after_a_reset_are_not_redirected(stage: SimStage) -> None:
    peer = await stage.group_at(50)
    await peer.targets(EPOCH_MS)
    await peer.heartbeat(model=MessageModel.BROADCASTING)
    assert (await epoch_of_pull(peer, 60))[:2] == (0, 92)
    # Should the group be clustering after all, nothing of that is stored.
    assert (await peer.commit(92)).code == FENCED_CODE


@pytest.mark.parametrize("mode", [ResetMode.CLASSIC, ResetMode.SERVER])
@simulated(**FENCED)
async def test_other_modes_cannot_follow_a_fenced_reset(stage: SimStage, mode: ResetMode) -> None:
    peer = await stage.group_at(50)
    await peer.commit_all(50, 1, group="Other")
    await peer.heartbeat("Other")
    await peer.targets(EPOCH_MS)
    response = await peer.reset(0, reset_mode=mode)
    assert response.code == 1
    assert "--mode fenced" in remark_of(response)
    assert await peer.record() == (0, 1)
    (await peer.reset(0, group="Other", reset_mode=mode)).require_success()


@simulated(**FENCED)
async def test_a_fenced_reset_takes_the_mark_of_a_server_reset_away(stage: SimStage) -> None:
    peer = await stage.group_at(50)
    await peer.targets(EPOCH_MS, reset_mode=ResetMode.SERVER)
    await peer.targets(TO_THE_END)
    assert await peer.record() == (100, 1)
    assert await epoch_of_pull(peer, 50, epoch=0) == (21, 100, 1)


@simulated(**FENCED)
async def test_only_suspended_pulls_of_the_group_and_queue_return_at_once(stage: SimStage) -> None:
    peer = await stage.group_at(100, queues=2)
    await stage.at(3.0)

    def hold(**options: Any) -> asyncio.Future[tuple[int, int, int | None]]:
        return asyncio.ensure_future(epoch_of_pull(stage.peer(), 100, hold_ms=15_000, **options))

    knowing, legacy = hold(epoch=0), hold()
    others = [hold(queue_id=1), hold(group="Other")]
    await stage.at(4.0)
    assert await peer.targets(0, queue_id=0, offset=40) == {0: 40}
    assert knowing.done()
    assert legacy.done()
    assert await knowing == await legacy == (21, 40, 1)
    assert stage.runtime.clock.monotonic() == pytest.approx(4.0, abs=0.001)
    assert not any(other.done() for other in others)
    for other in others:
        assert (await other)[0] == 19


@simulated(**FENCED)
async def test_epoch_aware_clients_without_a_suspended_pull_get_a_notification(stage: SimStage) -> None:
    """No other consumer is notified: it would not understand the notification, or has it already."""
    admin = await stage.group_at(50, queues=2)
    former, last, held, legacy, other, gone = (stage.peer(f"c{number}") for number in range(2, 8))
    await former.pull(50, epoch=0)
    await last.pull(50, epoch=0)
    await legacy.pull(50)
    await other.pull(50, epoch=0, group="Other")
    waiting = asyncio.ensure_future(held.pull(100, queue_id=1, epoch=0, hold_ms=15_000))
    await stage.at(3.0)
    assert await admin.targets(EPOCH_MS) == {0: 0, 1: 0}
    assert (await waiting).code == 21
    await stage.at(4.0)
    peers = (admin, former, last, held, legacy, other)
    assert [peer.count(NOTICE) for peer in peers] == [0, 0, 1, 0, 0, 0]
    told = (await last.hear(NOTICE)).decode_header(NotifyQueueResetRequestHeader)
    assert told == NotifyQueueResetRequestHeader("G", "T", "broker-a", 0, 0, 1)
    # It has pulled since; then it leaves, and no consumer is left to notify.
    await held.pull(0, queue_id=1, epoch=1)
    await gone.pull(0, epoch=1)
    await gone.client.close()
    await stage.at(5.0)
    assert await admin.targets(EPOCH_MS) == {0: 0, 1: 0}
    await stage.at(6.0)
    assert [peer.count(NOTICE) for peer in (*peers, gone)] == [0, 0, 1, 1, 0, 0, 0]


# On disk.


@simulated(**FENCED)
async def test_an_answered_reset_survives_a_kill_at_that_moment(stage: SimStage) -> None:
    peer = await stage.group_at(100)
    await peer.targets(EPOCH_MS)
    await peer.targets(EPOCH_MS)
    shutil.copytree(stage.root / "broker-a", stage.root / "crashed")
    await stage.start_broker(store_path_root_dir=str(stage.root / "crashed"), **FENCED)
    running = stage.peer()
    assert (await running.commit(100, epoch=1)).code == FENCED_CODE
    assert (await running.commit(100)).code == FENCED_CODE
    assert await running.record() == (0, 2)
    (await running.commit(5, epoch=2)).require_success()
    await running.targets(EPOCH_MS)
    assert await running.record() == (0, 3)


class FullDisk(OsDisk):
    """A disk that refuses a step of saving consumerOffset.json while the test says so."""

    refuses: str | None = None

    def write(self, path: Path, data: bytes) -> None:
        if self.refuses == "write" and path.name.startswith("consumerOffset"):
            super().write(path, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")
        super().write(path, data)

    def replace(self, source: Path, target: Path) -> None:
        if self.refuses == target.suffix and target.name.startswith("consumerOffset"):
            raise OSError(errno.ENOSPC, "No space left on device")
        super().replace(source, target)


@pytest.mark.parametrize("step", ["write", ".bak", ".json"])
def test_a_disk_that_refuses_leaves_everything_as_it_was(simulate: RunScenario, step: str) -> None:
    disk = FullDisk()

    async def scenario(stage: SimStage) -> None:
        await stage.start_broker(disk=disk, **FENCED)
        peer = await stage.group_at(100)
        await stage.at(10.1)
        held = asyncio.ensure_future(epoch_of_pull(stage.peer(), 100, hold_ms=15_000, epoch=0))
        await stage.at(11.0)
        disk.refuses = step
        response = await peer.reset(EPOCH_MS)
        assert response.code == 1
        assert remark_of(response).startswith("group G is not reset, nothing has changed: cannot save ")
        assert remark_of(response).endswith("consumerOffset.json: No space left on device")
        assert not held.done()
        assert await peer.record() == (100, 0)
        (await peer.commit(99, epoch=0)).require_success()
        (await peer.commit(100)).require_success()
        assert await listed(peer) == []
        shutil.copytree(stage.root / "broker-a", stage.root / "crashed")
        restarted = await stage.start_broker(store_path_root_dir=str(stage.root / "crashed"), **FENCED)
        assert await stage.peer().record() == (100, 0)
        await restarted.close()
        # When the disk has space, the same reset counts as the first one.
        disk.refuses = None
        await peer.targets(EPOCH_MS)
        assert await held == (21, 0, 1)

    simulate(scenario, brokers=0)


async def test_one_worker_writes_at_a_time(stage: ServerStage, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = await stage.start_broker(**FENCED)
    writers: list[int] = []
    save = broker.context.offsets.table.save

    def counted(changes: OffsetChanges) -> None:
        writers.append(1)
        assert len(writers) == 1
        save(changes)
        writers.pop()

    monkeypatch.setattr(broker.context.offsets.table, "save", counted)
    peer = stage.peer()
    await peer.create_topic(write=1, read=1)
    await peer.commit(5)
    answers = []
    for number in range(40):
        answers.append(asyncio.ensure_future(peer.targets(TO_THE_END)))
        await peer.commit(number, group="Other")
        broker.context.offsets.flush.flush()
    await asyncio.gather(*answers)
    assert await peer.record() == (0, 40)


async def test_an_administrator_that_hangs_up_does_not_undo_the_reset(
    stage: ServerStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = await stage.start_broker(**FENCED)
    peer = stage.peer()
    await peer.create_topic(write=1, read=1)
    await peer.commit(5)
    admin = stage.peer("admin")
    (await admin.stored()).require_success()
    began = asyncio.Event()
    reset = broker.context.offsets.flush.reset

    def noted(plan: Callable[[], ResetPlan]) -> asyncio.Future[None]:
        began.set()
        return reset(plan)

    monkeypatch.setattr(broker.context.offsets.flush, "reset", noted)
    asking = asyncio.ensure_future(admin.reset(TO_THE_END))
    async with asyncio.timeout(60):
        await began.wait()
        await admin.client.close()
        await asyncio.gather(asking, return_exceptions=True)
        while await peer.record() != (0, 1):
            pass


async def test_a_group_that_is_deleted_while_its_reset_is_written_stays_deleted(
    stage: ServerStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = await stage.start_broker(**FENCED, auto_create_subscription_group=False)
    context, peer = broker.context, stage.peer()
    await peer.create_topic(write=1, read=1)
    await peer.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=SubscriptionGroupConfig("G"))
    written, go_on = threading.Event(), threading.Event()
    save = context.offsets.table.save

    def held(changes: OffsetChanges) -> None:
        save(changes)
        written.set()
        assert go_on.wait(60)

    monkeypatch.setattr(context.offsets.table, "save", held)
    asking = asyncio.ensure_future(stage.peer("admin").reset(TO_THE_END))
    await asyncio.to_thread(written.wait, 60)
    monkeypatch.setattr(context.offsets.table, "save", save)
    deletion = DeleteSubscriptionGroupRequestHeader("G", remove_offset=True)
    deleting = asyncio.ensure_future(stage.peer("other").ask(RequestCode.DELETE_SUBSCRIPTIONGROUP, deletion))
    async with asyncio.timeout(60):
        while context.tables.groups.get("G") is not None:
            await peer.stored()
    go_on.set()
    assert (await asking).code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
    (await deleting).require_success()
    assert not context.offsets.table.topics_of("G")
    context.offsets.table.persist()
    assert "@G" not in (context.config.root / "config" / "consumerOffset.json").read_text()


# Clients that know epochs.


@simulated(**FENCED)
async def test_pulls_and_commits_of_the_queues_epoch_go_as_ever(stage: SimStage) -> None:
    peer = await stage.group_at(100)
    assert await epoch_of_pull(peer, 0, epoch=0, commit=90) == (0, 32, None)
    assert await peer.record() == (90, 0)
    await peer.targets(EPOCH_MS)
    assert await epoch_of_pull(peer, 0, epoch=1) == (0, 32, 1)
    assert await epoch_of_pull(peer, 32, epoch=1, commit=20) == (0, 64, 1)
    (await peer.commit(30, epoch=1)).require_success()
    (await peer.commit(25, epoch=1)).require_success()
    assert await peer.record() == (25, 1)


@pytest.mark.parametrize("epoch", [0, 1, 3])
@simulated(**FENCED)
async def test_a_commit_of_another_epoch_gets_the_stored_offset_and_is_listed(
    stage: SimStage, epoch: int
) -> None:
    peer = await stage.group_at(100)
    await peer.targets(TO_THE_END)
    await peer.targets(EPOCH_MS)
    await stage.at(7.0)
    response = await peer.commit(70, epoch=epoch)
    assert response.code == FENCED_CODE
    header = response.decode_header(OffsetFencedResponseHeader)
    assert (header.offset, header.epoch) == (0, 2)
    assert "its offset is 0 of epoch 2" in remark_of(response)
    assert await peer.record() == (0, 2)
    (fenced,) = await listed(peer)
    assert fenced == FencedCommit(
        at=EPOCH_MS + 7_000,
        client=fenced.client,
        group="G",
        topic="T",
        queue_id=0,
        offset=70,
        stored_offset=0,
        stored_epoch=2,
        carrier=15,
        client_id="c1",
        epoch=epoch,
        reason=f"of epoch {epoch}, and the queue is at 2",
    )
    assert fenced.client.startswith("10.0.3.")


@pytest.mark.parametrize("epoch", [0, 2])
@simulated(**FENCED)
async def test_a_pull_of_another_epoch_is_redirected_and_its_commit_is_fenced(
    stage: SimStage, epoch: int
) -> None:
    peer = await stage.group_at(100)
    await peer.targets(0, queue_id=0, offset=40)
    response = await peer.pull(100, epoch=epoch, commit=100, hold_ms=15_000)
    assert (response.code, response.remark, response.body) == (21, "OFFSET_RESET", None)
    header = response.decode_header(PullMessageResponseHeader)
    assert (header.next_begin_offset, header.epoch) == (40, 1)
    assert (header.min_offset, header.max_offset) == (0, 100)
    assert await peer.record() == (40, 1)
    (fenced,) = await listed(peer)
    assert (fenced.carrier, fenced.offset, fenced.epoch) == (11, 100, epoch)
    assert stage.broker.context.store.max_offset("OFFSET_MOVED_EVENT", 0) == 0


@simulated(**FENCED)
async def test_after_lost_epochs_consumers_return_to_the_stored_offset(stage: SimStage) -> None:
    peer = await stage.group_at(60)
    # As after RocketMQ has rewritten the file.
    assert (await peer.commit(70, epoch=4)).code == FENCED_CODE
    assert await epoch_of_pull(peer, 70, epoch=4) == (21, 60, None)
    # Nothing stored is nothing to keep to.
    assert await epoch_of_pull(peer, 7, epoch=4, group="New", commit=6) == (0, 39, None)
    assert await peer.record(group="New") == (6, 0)


# Clients that know none.


@simulated(**FENCED)
async def test_a_legacy_commit_is_fenced_until_its_connection_queries_the_offset(stage: SimStage) -> None:
    peer = await stage.group_at(100)
    await peer.targets(EPOCH_MS)
    response = await peer.commit(100)
    assert response.code == FENCED_CODE
    assert (await peer.commit(0)).code == FENCED_CODE
    assert [(commit.offset, commit.epoch) for commit in await listed(peer)] == [(100, None), (0, None)]
    assert (await listed(peer))[0].reason == (
        "without epoch, and nothing was delivered to its connection since the reset"
    )
    assert await stage.peer("c2").stored_offset() == 0
    assert (await peer.commit(0)).code == FENCED_CODE
    assert await peer.stored_offset() == 0
    (await peer.commit(0)).require_success()
    assert (await peer.commit(1)).code == FENCED_CODE


@simulated(**FENCED)
async def test_a_legacy_commit_counts_as_far_as_messages_came_again_to_its_connection(
    stage: SimStage,
) -> None:
    peer = await stage.group_at(100)
    await peer.targets(0, queue_id=0, offset=10)
    assert await peer.stored_offset() == 10
    assert await epoch_of_pull(peer, 10) == (0, 42, 1)
    assert (await peer.commit(43)).code == FENCED_CODE
    assert (await peer.commit(9)).code == FENCED_CODE
    (await peer.commit(42)).require_success()
    (await peer.commit(10)).require_success()
    # The commit in a pull cannot cover the messages of that pull.
    assert (await epoch_of_pull(peer, 42, commit=43))[1] == 74
    assert (await peer.record())[0] == 10
    (await peer.commit(74)).require_success()
    assert (await listed(peer))[-1].reason == "without epoch, and 10 to 42 was delivered since the reset"


@simulated(**FENCED)
async def test_a_legacy_pull_joins_the_epoch_by_pulling_at_the_redirected_offset(stage: SimStage) -> None:
    peer = await stage.group_at(100)
    await peer.targets(0, queue_id=0, offset=10)
    assert await epoch_of_pull(peer, 100, commit=100) == (21, 10, 1)
    assert await epoch_of_pull(peer, 99) == (21, 10, 1)
    assert await epoch_of_pull(peer, 10, commit=10) == (0, 42, 1)
    (await peer.commit(42)).require_success()
    assert [commit.offset for commit in await listed(peer)] == [100]


@simulated(**FENCED)
async def test_a_second_pull_loop_of_the_same_connection_is_redirected(stage: SimStage) -> None:
    peer = await stage.group_at(100)
    await peer.targets(0, queue_id=0, offset=10)
    await peer.stored_offset()
    await peer.pull(10)
    (await peer.commit(20)).require_success()
    assert await epoch_of_pull(peer, 100) == (21, 20, 1)
    assert (await peer.commit(100)).code == FENCED_CODE
    # The first pull loop continues.
    assert await epoch_of_pull(peer, 42) == (0, 74, 1)


@simulated(**FENCED)
async def test_asking_in_the_middle_takes_nothing_away(stage: SimStage) -> None:
    peer = await stage.group_at(100)
    await peer.targets(EPOCH_MS)
    await peer.stored_offset()
    await peer.pull(0)
    await peer.pull(32)
    (await peer.commit(5)).require_success()
    assert await peer.stored_offset() == 5
    (await peer.commit(64)).require_success()
    (await peer.commit(0)).require_success()


@simulated(**FENCED)
async def test_a_returned_queue_starts_at_the_offset_of_the_other_consumer(stage: SimStage) -> None:
    first = await stage.group_at(100)
    second = stage.peer("c2")
    await first.targets(EPOCH_MS)
    await first.stored_offset()
    await first.pull(0)
    await second.stored_offset()
    await second.pull(0)
    await second.pull(32)
    (await second.commit(60)).require_success()
    assert await first.stored_offset() == 60
    assert (await first.commit(40)).code == FENCED_CODE
    assert await epoch_of_pull(first, 60) == (0, 92, 1)
    (await first.commit(92)).require_success()


@simulated(**FENCED)
async def test_a_pull_out_of_range_is_led_back_and_may_commit_that(
    stage: SimStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = await stage.group_at(100)
    await peer.targets(TO_THE_END)
    await peer.stored_offset()
    # The topic was created again, with fewer messages.
    store = stage.broker.context.store
    get_message = store.get_message
    result = get_message("T", 0, 120, 32, None)
    monkeypatch.setattr(
        stage.broker.context.pulls.puller,
        "_get_message",
        lambda *asked: result if asked[2] == 100 else get_message(*asked),
    )
    code, led_to, _ = await epoch_of_pull(peer, 100)
    assert (code, led_to) == (21, result.next_begin_offset)
    (await peer.commit(led_to)).require_success()
    assert (await peer.commit(led_to - 1)).code == FENCED_CODE


@simulated(**FENCED)
async def test_each_reset_begins_a_new_delivery(stage: SimStage) -> None:
    peer = await stage.group_at(100)
    await peer.targets(EPOCH_MS)
    await peer.stored_offset()
    await peer.pull(0)
    await peer.targets(EPOCH_MS)
    assert (await peer.commit(20)).code == FENCED_CODE
    assert await epoch_of_pull(peer, 32, commit=20) == (21, 0, 2)


@simulated(**FENCED)
async def test_what_a_connection_joined_ends_with_it(stage: SimStage) -> None:
    peer = await stage.group_at(100)
    await peer.targets(EPOCH_MS)
    await peer.stored_offset()
    await peer.pull(0)
    connections = stage.broker.context.offsets.fencing._connections
    assert len(connections) == 1
    await peer.client.close()
    await stage.at(5.0)
    assert connections == {}
    again = stage.peer()
    assert (await again.commit(20)).code == FENCED_CODE


def test_a_connection_with_too_many_queues_is_redirected_again(
    simulate: RunScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fencing, "MAX_DELIVERIES", 2)

    async def scenario(stage: SimStage) -> None:
        peer = await stage.group_at(10, queues=3)
        await peer.targets(EPOCH_MS)
        for queue_id in range(3):
            await peer.stored_offset(queue_id=queue_id)
        assert [(await peer.commit(0, queue_id=queue_id)).code for queue_id in range(3)] == [
            FENCED_CODE,
            0,
            0,
        ]
        assert (await epoch_of_pull(peer, 5))[:2] == (21, 0)
        assert (await epoch_of_pull(peer, 0))[0] == 0

    simulate(scenario, **FENCED)


@simulated(**FENCED)
async def test_an_admin_clients_direct_write_is_fenced_with_advice(stage: SimStage) -> None:
    peer = await stage.group_at(100)
    await peer.targets(EPOCH_MS)
    response = await stage.peer("admin").commit(50)
    assert response.code == FENCED_CODE
    assert "resetMode=fenced" in remark_of(response)


# The list.


def test_fenced_commits_by_group_and_topic_the_newest_first_to_stay(
    simulate: RunScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rewindmq.broker.offsets.fencing.MAX_FENCED_COMMITS", 3)

    async def scenario(stage: SimStage) -> None:
        peer = await stage.group_at(100)
        await peer.heartbeat("Other")
        for group in ("G", "Other"):
            await peer.targets(EPOCH_MS, group=group)
        for offset in (1, 2, 3):
            await peer.commit(offset, epoch=7)
        await peer.commit(4, group="Other", epoch=7)
        assert [commit.offset for commit in await listed(peer)] == [2, 3, 4]
        assert [commit.offset for commit in await listed(peer, group="G")] == [2, 3]
        assert [commit.offset for commit in await listed(peer, group="Other", topic="T")] == [4]
        assert await listed(peer, topic="U") == []
        response = await peer.ask(RequestCode.LIST_FENCED_COMMITS, ListFencedCommitsRequestHeader("G"))
        assert decode_body(response, FencedCommitList).total == 4

    simulate(scenario, **FENCED)


def test_the_list_is_bounded() -> None:
    assert limits.MAX_FENCED_COMMITS == 1_000


def test_points_of_a_fenced_reset(simulate: RunScenario) -> None:
    seen: list[tuple[Point, dict[str, Any]]] = []

    async def scenario(stage: SimStage) -> None:
        stage.probe = lambda point, details: seen.append((point, details))
        await stage.start_broker(**FENCED)
        peer = await stage.group_at(100)
        held = asyncio.ensure_future(peer.pull(100, hold_ms=15_000, epoch=0))
        await stage.at(3.0)
        seen.clear()
        await peer.targets(EPOCH_MS)
        await held
        await peer.commit(100, epoch=0)
        await peer.commit(1, epoch=1)
        await peer.stored_offset()

    simulate(scenario, brokers=0)
    assert [point for point, _ in seen][:8] == [
        Point.RESET_RECEIVED,
        Point.RESET_TARGETS_COMPUTED,
        Point.OFFSETS_FLUSHED,
        Point.OFFSET_RESET,
        Point.PULL_ANSWERED,
        Point.COMMIT_FENCED,
        Point.COMMIT_RECEIVED,
        Point.OFFSET_QUERIED,
    ]
    details = [details for _, details in seen]
    queue = {"group": "G", "topic": "T", "queue_id": 0}
    client = details[4]["client"]
    assert details[2] == {"group": "G", "topic": "T"}
    assert details[3] == {**queue, "offset": 0, "stored": 100, "epoch": 1, "mode": "fenced"}
    assert details[4] == {**queue, "offset": 100, "client": client, "code": 21, "next": 0}
    assert details[5] == {
        **queue,
        "offset": 100,
        "client": client,
        "carrier": 15,
        "epoch": 0,
        "stored": 0,
        "stored_epoch": 1,
        "reason": "of epoch 0, and the queue is at 1",
    }
    assert details[6] == {**queue, "offset": 1, "client": client, "carrier": 15, "epoch": 1, "stored": 0}
    assert details[7] == {**queue, "offset": 1, "epoch": 1, "client": client}
