"""Retention through a running broker, under virtual time: files go, queues and resets follow.

Specification: docs/spec/broker.md B.11.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from rewindmq.broker.background.retention import Retention
from rewindmq.broker.background.schedule import Schedule
from rewindmq.broker.config import BrokerConfig
from rewindmq.broker.store import StoreConfig
from rewindmq.broker.store.files.disk import OsDisk
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.header.admin import DeleteTopicRequestHeader
from rewindmq.protocol.header.offset import (
    GetEarliestMsgStoretimeRequestHeader,
    GetEarliestMsgStoretimeResponseHeader,
)
from rewindmq.protocol.names import OFFSET_MOVED_EVENT
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.runtime import system_runtime
from rewindmq.race.sim.world import EPOCH_MS
from tests.broker.store.store_box import StoreBox
from tests.support.choice import first_of
from tests.support.fixtures import RunScenario, simulated
from tests.support.hand_workers import HandWorkers
from tests.support.peer import Peer
from tests.support.stage import SimStage

ALL = (Profile.V42, Profile.V49, Profile.V53)
ANY_HOUR = ";".join(map(str, range(24)))
HOUR = 3_600.0
# Twenty of these fill a segment; 5.x stores more properties with each, and a separator behind them.
BODY = b"x" * 90
BODIES = dict.fromkeys((Profile.V42, Profile.V49), BODY) | {Profile.V53: b"x" * 8}
SMALL: dict[str, Any] = {"mapped_file_size_commit_log": 4_096, "mapped_file_size_consume_queue": 200}


class UsedDisk(OsDisk):
    """A real disk that reports the usage set by the test."""

    ratio = 0.1

    def used_ratio(self, path: Path) -> float:
        return self.ratio


async def start(stage: SimStage, **config: Any) -> Peer:
    """A broker that keeps messages for an hour, and a client connected to it."""
    defaults: dict[str, Any] = {"file_reserved_time": 1, "delete_when": ANY_HOUR, "store": SMALL}
    await stage.start_broker(**{**defaults, **config})
    return stage.peer()


def segments(stage: SimStage) -> list[int]:
    """The bases of the commit log's files."""
    return sorted(int(path.name) for path in (stage.root / "broker-a" / "commitlog").iterdir())


@pytest.mark.scenario("B07", "v42", "v49", "v53")
@pytest.mark.parametrize("profile", ALL)
def test_B07_a_pull_below_the_minimum_is_redirected_to_it(simulate: RunScenario, profile: Profile) -> None:
    """Retention has deleted 40 messages: a pull at 10 returns PULL_OFFSET_MOVED (21) with next 40."""

    async def scenario(stage: SimStage) -> None:
        peer = await start(stage, profile=profile)
        await peer.create_topic(write=1, read=1)
        await peer.fill(41, body=BODIES[profile])
        assert segments(stage) == [0, 4_096, 8_192]
        await stage.at(HOUR + 80)
        assert segments(stage) == [8_192]
        assert await peer.status(10) == (21, "OFFSET_TOO_SMALL", 40)
        assert stage.broker.context.store.min_offset("T", 0) == 40
        answer = await peer.pull(40)
        assert answer.code == ResponseCode.SUCCESS

    simulate(scenario, brokers=0)


@pytest.mark.parametrize("profile", ALL)
def test_a_reset_to_a_time_that_is_deleted_lands_on_the_minimum(
    simulate: RunScenario, profile: Profile
) -> None:
    """B.11, all three releases; stored offsets are not touched by deletion itself."""

    async def scenario(stage: SimStage) -> None:
        peer = await start(stage, profile=profile)
        await peer.create_topic(write=1, read=1)
        await peer.heartbeat()
        await peer.fill(41, body=BODIES[profile])
        await peer.commit(7)
        await stage.at(HOUR + 80)
        assert await peer.stored_offset() == 7
        assert await peer.search(EPOCH_MS) == 40
        await peer.heartbeat()
        assert (await peer.targets(EPOCH_MS)) == {0: 40}

    simulate(scenario, brokers=0)


@pytest.mark.parametrize(
    ("profile", "bounds", "status"),
    [
        (Profile.V42, (0, 20), (20, "MESSAGE_WAS_REMOVING", 20)),
        (Profile.V49, (0, 20), (20, "MESSAGE_WAS_REMOVING", 20)),
        (Profile.V53, (20, 20), (21, "OFFSET_TOO_SMALL", 20)),
    ],
)
def test_an_idle_queue_without_any_message_left(
    simulate: RunScenario, profile: Profile, bounds: tuple[int, int], status: tuple[int, str, int]
) -> None:
    """4.9.4 leaves the minimum where it was, 5.3.3 moves it to the maximum."""

    async def scenario(stage: SimStage) -> None:
        peer = await start(stage, profile=profile, store={**SMALL, "mapped_file_size_consume_queue": 6_000})
        await peer.create_topic(write=2, read=2)
        await peer.fill(20, body=BODIES[profile])
        await peer.fill(1, queue_id=1)
        await stage.at(HOUR + 80)
        store = stage.broker.context.store
        assert (store.min_offset("T", 0), store.max_offset("T", 0)) == bounds
        assert await peer.status(10) == status

    simulate(scenario, brokers=0)


@simulated(brokers=0)
async def test_the_first_run_is_at_60_s_and_takes_ten_files_100_ms_apart(stage: SimStage) -> None:
    disk = UsedDisk()
    peer = await start(stage, disk=disk)
    await peer.fill(20 * 15, body=BODY)
    disk.ratio = 0.86
    assert len(segments(stage)) == 15
    await stage.at(59.9)
    assert len(segments(stage)) == 15
    await stage.at(60.05)
    assert len(segments(stage)) == 14
    await stage.at(60.15)
    assert len(segments(stage)) == 13
    await stage.at(69.9)
    assert len(segments(stage)) == 5
    # The newest never goes.
    await stage.at(100)
    assert len(segments(stage)) == 1


@simulated(brokers=0)
async def test_nothing_goes_outside_the_hours_of_deleteWhen(stage: SimStage) -> None:
    peer = await start(stage, delete_when="")
    await peer.fill(41, body=BODY)
    await stage.at(HOUR + 80)
    assert len(segments(stage)) == 3
    # 329: the next runs do it all the same.
    (await peer.ask(RequestCode.DELETE_EXPIRED_COMMITLOG)).require_success()
    await stage.at(HOUR + 100)
    assert len(segments(stage)) == 1


@pytest.mark.parametrize(
    ("ratio", "config", "left"),
    [
        # Above 75 %: at any hour, but only old files.
        (0.76, {}, 3),
        (0.76, {"file_reserved_time": 0}, 1),
        (0.74, {"file_reserved_time": 0}, 3),
        # Above 85 %: whatever its age.
        (0.86, {}, 1),
        (0.86, {"clean_file_forcibly_enable": False}, 3),
    ],
)
@simulated(brokers=0)
async def test_the_marks_of_a_disk_that_fills_up(
    stage: SimStage, ratio: float, config: dict[str, Any], left: int
) -> None:
    disk = UsedDisk()
    peer = await start(stage, delete_when="", disk=disk, **config)
    await peer.fill(41, body=BODY)
    await stage.at(2)
    disk.ratio = ratio
    await stage.at(65)
    assert len(segments(stage)) == left


@simulated(brokers=0)
async def test_above_90_percent_sends_are_refused_until_85(stage: SimStage) -> None:
    disk = UsedDisk()
    peer = await start(stage, disk=disk)
    await peer.fill(1)
    disk.ratio = 0.91
    await stage.at(65)
    answer = await peer.send()
    assert answer.code == ResponseCode.SERVICE_NOT_AVAILABLE
    assert "the broker's disk is full [CL:  0.91" in str(answer.remark)
    assert (await peer.pull(0)).code == ResponseCode.SUCCESS
    disk.ratio = 0.88
    await stage.at(75)
    assert (await peer.send()).code == ResponseCode.SERVICE_NOT_AVAILABLE
    disk.ratio = 0.85
    await stage.at(85)
    assert (await peer.send()).code == ResponseCode.SUCCESS


@simulated(brokers=0)
async def test_a_restart_after_retention_finds_the_same(stage: SimStage) -> None:
    peer = await start(stage)
    await peer.fill(41, body=BODY)
    await stage.at(HOUR + 80)
    await stage.broker.close()
    peer = await start(stage)
    store = stage.broker.context.store
    assert (store.min_offset("T", 0), store.max_offset("T", 0)) == (40, 41)
    assert store.rebuilt_entries == 0
    # Queue files of ten entries: four are gone as a whole.
    assert len(list((stage.root / "broker-a" / "consumequeue" / "T" / "0").iterdir())) == 1
    assert (await peer.send()).require_success().ext["queueOffset"] == 41


@simulated(brokers=0)
async def test_32_returns_the_store_time_of_the_first_retained_message(stage: SimStage) -> None:
    peer = await start(stage)
    await peer.create_topic(write=1, read=1)

    async def earliest() -> int:
        header = GetEarliestMsgStoretimeRequestHeader("T", 0)
        answer = await peer.ask(RequestCode.GET_EARLIEST_MSG_STORETIME, header)
        return answer.require_success().decode_header(GetEarliestMsgStoretimeResponseHeader).timestamp

    assert await earliest() == -1
    await stage.at(1)
    await peer.fill(40, body=BODY)
    assert await earliest() == EPOCH_MS + 1_000
    await stage.at(500)
    await peer.fill(1, body=BODY)
    await stage.at(HOUR + 80)
    assert await earliest() == EPOCH_MS + 500_000


@simulated(brokers=0)
async def test_306_removes_queues_without_messages_which_start_over_at_0(stage: SimStage) -> None:
    peer = await start(stage)
    await peer.create_topic(write=2, read=2)
    await peer.fill(20, body=BODY)
    await peer.fill(1, queue_id=1)
    await stage.at(HOUR + 80)
    (await peer.ask(RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE)).require_success()
    store = stage.broker.context.store
    assert (store.max_offset("T", 0), store.max_offset("T", 1)) == (0, 1)
    assert (await peer.send()).require_success().ext["queueOffset"] == 0


@simulated(brokers=0)
async def test_215_removes_a_topic_but_not_the_offsets_of_groups(stage: SimStage) -> None:
    peer = await start(stage)
    await peer.create_topic()
    await peer.create_topic("U")
    await peer.fill(5)
    await peer.fill(5, "U")
    await peer.commit(3)
    header = DeleteTopicRequestHeader("T")
    for _ in range(2):
        (await peer.ask(RequestCode.DELETE_TOPIC_IN_BROKER, header)).require_success()
    assert (await peer.pull(0)).code == ResponseCode.TOPIC_NOT_EXIST
    assert (await peer.pull(0, "U")).code == ResponseCode.SUCCESS
    context = stage.broker.context
    assert context.store.max_offset("T", 0) == 0
    assert context.offsets.table.query("G", "T", 0) == 3


@pytest.mark.parametrize("topic", ["SCHEDULE_TOPIC_XXXX", OFFSET_MOVED_EVENT, "a/b", ""])
@simulated(brokers=0)
async def test_215_refuses_system_topics_and_names_that_are_none(stage: SimStage, topic: str) -> None:
    peer = await start(stage)
    answer = await peer.ask(RequestCode.DELETE_TOPIC_IN_BROKER, DeleteTopicRequestHeader(topic))
    assert answer.code == ResponseCode.SYSTEM_ERROR


@simulated(brokers=0)
async def test_316_removes_queues_of_topics_that_are_gone(stage: SimStage) -> None:
    peer = await start(stage)
    await peer.fill(5)
    stage.broker.context.tables.topics.delete("T")
    (await peer.ask(RequestCode.CLEAN_UNUSED_TOPIC)).require_success()
    assert stage.broker.context.store.max_offset("T", 0) == 0


@pytest.mark.parametrize("profile", first_of([Profile.V49, Profile.V53]))
def test_delayed_messages_that_are_deleted_keep_back_none_that_follow(
    simulate: RunScenario, profile: Profile
) -> None:
    """Kept for an hour and due after two: they are lost, with the first files of their queue."""

    async def scenario(stage: SimStage) -> None:
        peer = await start(stage, profile=profile)
        await peer.create_topic()
        for _ in range(25):
            await peer.send(properties={"DELAY": "18"})
        await peer.fill(40, body=BODY)
        await stage.at(HOUR + 80)
        context = stage.broker.context
        assert context.store.entry("SCHEDULE_TOPIC_XXXX", 17, 0) is None
        assert context.store.max_offset("SCHEDULE_TOPIC_XXXX", 17) == 25
        await stage.at(2 * HOUR + 80)
        peer = stage.peer()
        await peer.send(properties={"DELAY": "18"})
        end = context.store.max_commit_log_offset
        await stage.at(4 * HOUR + 200)
        assert context.store.max_commit_log_offset > end
        assert context.delays.offsets.table[18] == 26

    simulate(scenario, brokers=0)


@pytest.fixture
def box(tmp_path: Path) -> Iterator[StoreBox]:
    made = StoreBox(tmp_path / "store")
    yield made
    made.close_all()


class OneRun:
    """A schedule that starts the service's work when the test says so."""

    start: Callable[[], None]

    def every(self, first: float, period: float, callback: Callable[[], None]) -> None:
        self.start = callback


class CalledWorkers(HandWorkers):
    """Tells when there is a job."""

    def __init__(self) -> None:
        super().__init__()
        self.called = asyncio.Event()

    def run(self, function: Callable[..., Any], *args: Any) -> Awaitable[Any]:
        self.called.set()
        return super().run(function, *args)


class Deleting:
    """Retention over a store of six expired segments, whose workers wait for the test."""

    def __init__(self, box: StoreBox, disk: OsDisk | None = None) -> None:
        self.workers = CalledWorkers()
        runtime = replace(system_runtime(), workers=self.workers)
        self.store = box.open(disk, StoreConfig(**SMALL))
        for _ in range(60):
            box.put(self.store, body=b"x" * 290)
        self.store.flush()
        config = BrokerConfig(file_reserved_time=0, delete_when=ANY_HOUR, delete_commit_log_files_interval=0)
        self.retention = Retention(runtime, config, self.store, ends_idle=True)
        schedule = OneRun()
        self.retention.begin(cast("Schedule", schedule))
        schedule.start()
        self.files = box.root / "commitlog"

    async def job(self) -> None:
        """Wait until retention has work for a worker."""
        await self.workers.called.wait()
        self.workers.called.clear()


async def test_a_worker_deletes_segments_while_the_store_is_used(box: StoreBox) -> None:
    deleting = Deleting(box)
    await deleting.job()
    store = deleting.store
    assert len(list(deleting.files.iterdir())) == 6
    # The log begins behind the segment, and takes messages.
    assert store.min_commit_log_offset == 4_096
    assert store.look_message(0) is None
    assert box.put(store).queue_offset == 60
    store.flush()
    await deleting.workers.finish()
    assert len(list(deleting.files.iterdir())) == 5
    await deleting.job()
    assert store.min_commit_log_offset == 2 * 4_096


async def test_a_segment_that_cannot_be_deleted_is_a_part_of_the_log_again(
    box: StoreBox, caplog: pytest.LogCaptureFixture
) -> None:
    deleting = Deleting(box, StuckDisk())
    await deleting.job()
    await deleting.workers.finish()
    for _ in range(5):
        await asyncio.sleep(0)
    assert deleting.store.min_commit_log_offset == 0
    assert deleting.store.get_message("T", 0, 0, 1, None).message_count == 1
    assert "Permission denied" in caplog.text


async def test_a_stop_waits_for_the_segment_that_is_being_deleted(box: StoreBox) -> None:
    deleting = Deleting(box)
    await deleting.job()
    closing = asyncio.ensure_future(deleting.retention.close())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not closing.done()
    await deleting.workers.finish()
    await closing
    assert len(list(deleting.files.iterdir())) == 5


class StuckDisk(OsDisk):
    """Removes no segment."""

    def remove(self, path: Path) -> None:
        if path.parent.name == "commitlog":
            raise PermissionError(13, "Permission denied", str(path))
        super().remove(path)
