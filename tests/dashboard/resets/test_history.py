"""The history of watched resets survives restarts, and names a damaged file instead of failing."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rewindmq.dashboard.resets import history
from rewindmq.dashboard.resets.history import DamagedError, MemoryHistory, open_folder
from rewindmq.dashboard.resets.record import VERSION, QueueRecord, ResetRecord, Status
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.remoting.runtime import system_runtime
from rewindmq.watch.verdict.states import State
from tests.dashboard.site import dashboard

WORKERS = system_runtime().workers
# A closed port: the pages of the history ask no cluster.
NOWHERE = "127.0.0.1:1"
SECONDS = 20.0


@pytest.fixture(autouse=True)
def no_thread_stays() -> Iterator[None]:
    """End the threads that wrote files: tests of other folders count the threads of this process."""
    yield
    WORKERS.close()


def new_record(number: int, status: Status = Status.PROVEN) -> ResetRecord:
    record = ResetRecord(
        version=VERSION,
        id=f"20261124T1200{number % 60:02}-{number:08x}",
        group=f"<b>group-{number}</b>",
        topic="orders",
        timestamp=-1,
        began_ms=1_700_000_000_000 + number,
        status=status,
    )
    record.queues.append(QueueRecord("broker-a", 0, 6, 0, State.PROVEN))
    record.count()
    return record


def fail_full(_descriptor: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def endings(folder: Path) -> list[str]:
    return sorted(path.suffix for path in folder.iterdir())


async def test_a_record_survives_a_restart(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "history"
    async with open_folder(folder, WORKERS) as kept:
        await kept.save(new_record(1))
        await kept.save(new_record(2))
    async with open_folder(folder, WORKERS) as kept:
        assert [each.id for each in kept.listed().summaries] == [new_record(2).id, new_record(1).id]
        assert kept.listed().summaries[0].counts == {"proven": 1}
        assert await kept.read(new_record(1).id) == new_record(1)
    # Its files are for their owner only.
    assert {path.stat().st_mode & 0o077 for path in folder.iterdir()} == {0}


async def test_a_reset_that_was_watched_when_the_dashboard_was_killed_is_interrupted(tmp_path: Path) -> None:
    async with open_folder(tmp_path, WORKERS) as kept:
        await kept.save(new_record(1, Status.RUNNING))
    async with dashboard(NOWHERE, history=tmp_path) as site:
        page = await site.get(f"/resets/{new_record(1).id}")
        listed = await site.get("/resets")
    assert 'id="verdict">interrupted<' in page.text
    assert "the dashboard ended during the watch" in page.text
    assert ">interrupted</span>" in listed.text


async def test_a_damaged_file_is_named_and_the_others_are_shown(tmp_path: Path) -> None:
    async with open_folder(tmp_path, WORKERS) as kept:
        for number in range(5):
            await kept.save(new_record(number))
    first, second, third, fourth, _ = (tmp_path / f"{new_record(number).id}.json" for number in range(5))
    first.write_bytes(first.read_bytes()[:-40])
    second.write_bytes(b"\xff\xfe")
    third.write_bytes(fourth.read_bytes())
    (tmp_path / "20261124T120009-0000ffff.json").mkdir()
    (tmp_path / "notes.txt").write_text("not a record")
    async with dashboard(NOWHERE, history=tmp_path) as site:
        listed = await site.get("/resets")
        assert listed.status == 200
        for name in (first.name, second.name, third.name):
            assert f"{name} is damaged: " in listed.text
        assert "20261124T120009-0000ffff.json cannot be read: Is a directory." in listed.text
        assert "&lt;b&gt;group-3&lt;/b&gt;" in listed.text
        assert "group-4" in listed.text
        assert "group-1" not in listed.text
        assert "<b>group" not in listed.text
        # Damaged while the dashboard runs.
        fourth.write_bytes(b"{}")
        page = await site.get(f"/resets/{fourth.stem}")
        assert page.status == 404
        assert f"{fourth.name} is damaged: " in page.text


async def test_a_file_that_is_too_long_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_folder(tmp_path, WORKERS) as kept:
        await kept.save(new_record(1))
        monkeypatch.setattr(history, "MAX_FILE_BYTES", 100)
        with pytest.raises(DamagedError, match="more than 100 bytes"):
            await kept.read(new_record(1).id)


async def test_a_write_that_fails_leaves_the_record_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_folder(tmp_path, WORKERS) as kept:
        await kept.save(new_record(1, Status.RUNNING))

        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", fail_full)
            with pytest.raises(OSError, match="No space"):
                await kept.save(new_record(1))
    async with open_folder(tmp_path, WORKERS) as kept:
        found = await kept.read(new_record(1).id)
        assert found is not None
        assert found.status is Status.INTERRUPTED
    assert endings(tmp_path) == [".json", ".lock"]


async def test_a_write_that_is_still_at_it_does_not_undo_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stop cancels the wait for a write, not the write, and then writes the record's end."""
    begun, may_go_on, over = threading.Event(), threading.Event(), threading.Event()
    write = history._write

    def wait_first(folder: Path, name: str, content: bytes) -> None:
        if begun.is_set():
            write(folder, name, content)
            return
        begun.set()
        assert may_go_on.wait(SECONDS)
        write(folder, name, content)
        over.set()

    async with open_folder(tmp_path, WORKERS) as kept:
        monkeypatch.setattr(history, "_write", wait_first)
        first = asyncio.ensure_future(kept.save(new_record(1, Status.RUNNING)))
        assert await asyncio.to_thread(begun.wait, SECONDS)
        first.cancel()
        await asyncio.wait((first,))
        last = asyncio.ensure_future(kept.save(new_record(1)))
        # It waits for its turn.
        assert await asyncio.wait((last,), timeout=0.1) == (set(), {last})
        may_go_on.set()
        await asyncio.wait_for(last, SECONDS)
        assert over.is_set()
    async with open_folder(tmp_path, WORKERS) as kept:
        found = await kept.read(new_record(1).id)
        assert found is not None
        assert found.status is Status.PROVEN
    assert endings(tmp_path) == [".json", ".lock"]


async def test_a_write_that_comes_after_a_newer_one_is_left_out(tmp_path: Path) -> None:
    async with open_folder(tmp_path, WORKERS) as kept:
        await kept.save(new_record(1))
        # A thread that got its job first may be the last to begin it.
        kept._write_in_turn(0, f"{new_record(1).id}.json", b"older")
        assert await kept.read(new_record(1).id) == new_record(1)


async def test_only_one_dashboard_uses_a_folder(tmp_path: Path) -> None:
    async with open_folder(tmp_path, WORKERS):
        with pytest.raises(ClientError, match="another dashboard keeps its history in"):
            async with open_folder(tmp_path, WORKERS):
                pass
    async with open_folder(tmp_path, WORKERS):
        pass


async def test_the_memory_keeps_the_newest_records_and_those_that_run() -> None:
    kept = MemoryHistory()
    running = new_record(0, Status.RUNNING)
    await kept.save(running)
    for number in range(1, history.MAX_IN_MEMORY + 3):
        await kept.save(new_record(number))
    found = kept.listed().summaries
    assert len(found) == history.MAX_IN_MEMORY + 1
    assert found[-1] is running
    assert await kept.read(new_record(1).id) is None
    assert "start it with --history DIR" in kept.place


async def test_the_newest_files_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MAX_LISTED", 2)
    async with open_folder(tmp_path, WORKERS) as kept:
        for number in range(4):
            await kept.save(new_record(number))
        assert [each.id for each in kept.listed().summaries] == [new_record(3).id, new_record(2).id]
    async with open_folder(tmp_path, WORKERS) as kept:
        assert [each.id for each in kept.listed().summaries] == [new_record(3).id, new_record(2).id]
    assert endings(tmp_path) == [*[".json"] * 4, ".lock"]


def test_a_folder_that_cannot_be_used_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    command = [sys.executable, "-m", "rewindmq", "dashboard", "-n", NOWHERE, "--port", "0", "--history"]
    done = subprocess.run(
        [*command, str(tmp_path / "file" / "below")], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1
    assert done.stderr == (
        f"rewindmq dashboard: cannot use the history in {tmp_path / 'file' / 'below'} (Not a directory):"
        " name another folder with --history\n"
    )
