"""The tables of topics and groups have one writer; changes share a write, and responses wait for it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from rewindmq.broker.store.tables.config_file import ConfigFile
from rewindmq.broker.tables.flush import TableFlush
from rewindmq.broker.tables.subscription_group import SubscriptionGroupManager
from rewindmq.protocol.body.group import SubscriptionGroupConfig
from rewindmq.protocol.body.registration import DataVersion
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RequestError
from tests.support.hand_workers import HandWorkers, RefusingDisk


class Box:
    """A table of groups and its writer."""

    def __init__(self, path: Path) -> None:
        self.workers = HandWorkers()
        self.disk = RefusingDisk()
        self.path = path
        self.groups = self.read()
        self.flush = TableFlush(self.workers, [self.groups])

    def read(self) -> SubscriptionGroupManager:
        groups = SubscriptionGroupManager(
            ConfigFile(self.path, self.disk), lambda: 0, self.begin, auto_create=True
        )
        groups.load()
        return groups

    def begin(self) -> None:
        self.flush.begin()

    def add(self, name: str) -> asyncio.Task[None]:
        self.groups.update(SubscriptionGroupConfig(name))
        return asyncio.ensure_future(self.flush.saved())

    def saved(self, name: str) -> bool:
        return self.read().get(name) is not None


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path / "subscriptionGroup.json")


async def settled() -> None:
    """Let every task run that can."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_change_takes_effect_at_once_and_its_response_waits_for_the_disk(box: Box) -> None:
    done = box.add("G")
    await settled()
    assert box.groups.get("G") is not None
    assert not done.done()
    assert not box.groups.is_saved("G")
    await box.workers.finish()
    await done
    assert box.saved("G")
    assert box.groups.is_saved("G")


async def test_all_changes_made_during_one_write_share_the_next(box: Box) -> None:
    first = box.add("first")
    await settled()
    later = [box.add(f"later-{number}") for number in range(100)]
    await settled()
    await box.workers.finish()
    await first
    await settled()
    assert not any(done.done() for done in later)
    await box.workers.finish()
    await asyncio.gather(*later)
    assert all(box.saved(f"later-{number}") for number in range(100))
    assert not box.workers.jobs


async def test_a_request_during_a_write_of_everything_waits_for_that_write_alone(box: Box) -> None:
    first = box.add("G")
    await settled()
    second = asyncio.ensure_future(box.flush.saved())
    await settled()
    await box.workers.finish()
    await asyncio.gather(first, second)
    assert not box.workers.jobs


async def test_a_refusing_disk_fails_the_answer_and_the_change_is_written_later(box: Box) -> None:
    box.disk.refuses = True
    done = box.add("G")
    await settled()
    await box.workers.finish()
    with pytest.raises(RequestError, match="No space left on device") as refusal:
        await done
    assert refusal.value.code == ResponseCode.SYSTEM_ERROR
    assert not box.workers.jobs, "a broken disk is not asked again without end"
    assert not box.groups.is_saved("G")
    box.disk.refuses = False
    box.flush.begin()
    await box.workers.finish()
    assert box.saved("G")
    assert box.flush.is_saved


async def test_an_unforeseen_error_fails_the_answer_and_not_the_writer(
    box: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(content: object) -> None:
        raise ValueError("no such shape")

    with monkeypatch.context() as patched:
        patched.setattr(box.groups, "save", fail)
        done = box.add("G")
        await settled()
        await box.workers.finish()
        with pytest.raises(RequestError, match="no such shape"):
            await done
    again = box.add("H")
    await settled()
    await box.workers.finish()
    await again
    assert box.saved("G")
    assert box.saved("H")


async def test_a_request_whose_result_is_already_saved_does_not_wait(box: Box) -> None:
    response = RemotingCommand(ResponseCode.SUCCESS)
    assert box.flush.answer(response, (DataVersion(),)) is response


async def test_a_request_that_changes_nothing_succeeds_while_the_disk_fails(box: Box) -> None:
    box.disk.refuses = True
    done = box.add("G")
    await settled()
    await box.workers.finish()
    with pytest.raises(RequestError):
        await done
    response = RemotingCommand(ResponseCode.SUCCESS)
    assert box.flush.answer(response, box.flush.versions) is response


async def test_a_cancelled_request_does_not_stop_the_write(box: Box) -> None:
    done = box.add("G")
    await settled()
    done.cancel()
    await settled()
    await box.workers.finish()
    assert box.saved("G")


async def test_an_entry_that_changes_during_its_write_is_not_saved_yet(box: Box) -> None:
    done = box.add("G")
    await settled()
    box.groups.update(msgspec.structs.replace(SubscriptionGroupConfig("G"), retry_max_times=3))
    await box.workers.finish()
    await done
    assert not box.groups.is_saved("G")
    await box.workers.finish()
    assert box.groups.is_saved("G")
    found = box.read().get("G")
    assert found is not None
    assert found.retry_max_times == 3
