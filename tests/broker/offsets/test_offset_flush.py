"""consumerOffset.json has one writer at a time, and contains a reset before the reset takes effect."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from rewindmq.broker.offsets.flush import OffsetFlush, ResetPlan
from rewindmq.broker.store import StoreError
from rewindmq.broker.store.tables import consumer_offset
from rewindmq.broker.store.tables.consumer_offset import ConsumerOffsetTable
from rewindmq.protocol.points import Point
from tests.support.hand_workers import HandWorkers, RefusingDisk


class Box:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.workers = HandWorkers()
        self.points: list[Point] = []
        self.disk = RefusingDisk()
        self.table = ConsumerOffsetTable(path, self.disk)
        self.flush = OffsetFlush(self.workers, self.table, lambda point, details: self.points.append(point))

    def reset(self, offset: int) -> asyncio.Future[None]:
        targets = {0: offset}

        def apply() -> None:
            self.points.append(Point.OFFSET_RESET)
            self.table.reset("G", "T", targets)

        return self.flush.reset(lambda: ResetPlan("G", "T", targets, apply))

    @property
    def saved(self) -> tuple[int, int]:
        table = ConsumerOffsetTable(self.path)
        table.load()
        return table.record("G", "T", 0)


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path / "consumerOffset.json")


async def test_a_reset_happens_when_it_is_on_disk_and_not_before(box: Box) -> None:
    box.table.commit("G", "T", 0, 100)
    done = box.reset(40)
    assert box.table.record("G", "T", 0) == (100, 0)
    await box.workers.finish()
    assert box.saved == box.table.record("G", "T", 0) == (40, 1)
    assert box.points == [Point.OFFSETS_FLUSHED, Point.OFFSET_RESET]
    await done


async def test_a_reset_waits_for_the_flush_that_runs_and_the_flush_for_the_reset(box: Box) -> None:
    box.table.commit("G", "T", 0, 100)
    box.flush.flush()
    done = box.reset(40)
    box.flush.flush()
    assert len(box.workers.jobs) == 1
    await box.workers.finish()
    assert box.saved == (100, 0)
    box.table.commit("G", "T", 0, 110)
    box.flush.flush()
    assert len(box.workers.jobs) == 1
    await box.workers.finish()
    await done
    assert box.saved == (40, 1)
    box.table.commit("G", "T", 0, 41)
    box.flush.flush()
    await box.workers.finish()
    assert box.saved == (41, 1)


async def test_resets_follow_each_other_each_upon_the_one_before(box: Box) -> None:
    first, second = box.reset(10), box.reset(20)
    await box.workers.finish()
    assert first.done()
    assert not second.done()
    await box.workers.finish()
    await second
    assert box.saved == box.table.record("G", "T", 0) == (20, 2)


async def test_a_disk_that_refuses_leaves_nothing_reset_and_the_next_reset_has_its_epoch(
    box: Box,
) -> None:
    box.table.commit("G", "T", 0, 100)
    box.table.persist()
    refused, next_one = box.reset(10), box.reset(20)
    box.disk.refuses = True
    await box.workers.finish()
    with pytest.raises(StoreError, match="No space left on device"):
        await refused
    assert box.saved == box.table.record("G", "T", 0) == (100, 0)
    box.disk.refuses = False
    await box.workers.finish()
    await next_one
    assert box.saved == (20, 1)


async def test_a_failed_flush_is_tried_again(box: Box, caplog: pytest.LogCaptureFixture) -> None:
    box.table.commit("G", "T", 0, 100)
    box.flush.flush()
    box.disk.refuses = True
    await box.workers.finish()
    (line,) = caplog.messages
    assert line.startswith("can not flush consumer offsets, will try again: ")
    assert box.points == []
    box.disk.refuses = False
    box.flush.flush()
    await box.workers.finish()
    assert box.saved == (100, 0)
    assert box.points == [Point.OFFSETS_FLUSHED]


async def test_a_caller_that_stops_waiting_does_not_stop_the_reset(box: Box) -> None:
    done = box.reset(10)
    done.cancel()
    await box.workers.finish()
    assert box.saved == box.table.record("G", "T", 0) == (10, 1)


async def test_a_plan_that_fails_or_moves_nothing_writes_nothing(box: Box) -> None:
    def fails() -> ResetPlan:
        raise StoreError("too many")

    with pytest.raises(StoreError, match="too many"):
        await box.flush.reset(fails)
    await box.flush.reset(lambda: ResetPlan("G", "T", {}, lambda: None))
    assert box.workers.jobs == []
    assert not box.path.exists()


async def test_close_waits_for_all_requested_saves(box: Box) -> None:
    box.reset(10)
    box.reset(20)
    closing = asyncio.ensure_future(box.flush.close())
    for _ in range(2):
        await asyncio.sleep(0)
        assert not closing.done()
        await box.workers.finish()
    await closing
    assert box.saved == (20, 2)


async def test_a_flush_of_very_many_changes_goes_on_until_all_are_written(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumer_offset, "_CHANGES_PER_WRITE", 2)
    for queue_id in range(5):
        box.table.commit("G", f"T{queue_id}", 0, 1)
    box.flush.flush()
    for _ in range(3):
        await box.workers.finish()
    assert not box.workers.jobs
    table = ConsumerOffsetTable(box.path)
    table.load()
    assert len(table.topics_of("G")) == 5
