"""Temporary folders: private, gone at the end, and removed by others only if no process uses them."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from rewindmq.protocol.files.temporary_folder import TemporaryFolder, remove_abandoned
from tests.support.processes import Watched

LOCK: Final = ".rewindmq-owner"
# Makes a folder with files, prints its path, and waits; with "child", a child inherits the lock.
OWNER: Final = """
import subprocess, sys
from rewindmq.protocol.files.temporary_folder import TemporaryFolder

folder = TemporaryFolder("test-")
(folder.path / "store").mkdir()
(folder.path / "store" / "file").write_text("x")
if sys.argv[1] == "child":
    child = subprocess.Popen(["cat"], stdin=0, stdout=subprocess.DEVNULL, pass_fds=[folder.descriptor])
    sys.stdout.write(f"{child.pid} ")
print(folder.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@pytest.fixture
def start() -> Iterator[Callable[[str], tuple[subprocess.Popen[str], list[str]]]]:
    """``start("alone")`` or ``start("child")`` runs an owner, and returns the words that it printed, too."""
    started: list[subprocess.Popen[str]] = []

    def run(how: str) -> tuple[subprocess.Popen[str], list[str]]:
        owner = subprocess.Popen(
            [sys.executable, "-c", OWNER, how], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        started.append(owner)
        assert owner.stdout is not None
        return owner, owner.stdout.readline().split()

    yield run
    for owner in started:
        owner.kill()
        owner.communicate()


Start = Callable[[str], tuple[subprocess.Popen[str], list[str]]]


def abandoned(scratch: Path, name: str = "rewindmq-left") -> Path:
    """Make a folder as a killed process leaves it."""
    folder = scratch / name
    folder.mkdir(mode=0o700)
    (folder / LOCK).touch(0o600)
    return folder


def test_a_folder_is_private_and_gone_at_the_end(scratch: Path) -> None:
    with TemporaryFolder() as folder:
        assert folder.path.parent == scratch
        assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
        (folder.path / "file").write_text("x")
        assert remove_abandoned() == []
    assert list(scratch.iterdir()) == []


def test_the_folder_of_a_killed_process_is_removed_by_the_next_one(scratch: Path, start: Start) -> None:
    killed, (left,) = start("alone")
    _, (used,) = start("alone")
    killed.kill()
    killed.wait()
    assert sorted(map(str, scratch.iterdir())) == sorted((left, used))
    with TemporaryFolder() as folder:
        assert sorted(map(str, scratch.iterdir())) == sorted((str(folder.path), used))
    assert Path(used, "store", "file").read_text() == "x"


def test_a_folder_stays_while_a_child_of_its_killed_owner_runs(start: Start) -> None:
    owner, (child, folder) = start("child")
    watched = Watched([int(child)])
    owner.kill()
    owner.wait()
    assert remove_abandoned() == []
    os.kill(int(child), signal.SIGKILL)
    watched.wait_gone()
    watched.close()
    assert remove_abandoned() == [Path(folder)]
    assert not Path(folder).exists()


def test_what_a_link_leads_to_stays(scratch: Path, tmp_path: Path) -> None:
    """A link in the place of the folder, of its lock, or within it."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / LOCK).touch(0o600)
    (elsewhere / "kept").write_text("x")
    (scratch / "rewindmq-link").symlink_to(elsewhere)
    locked = scratch / "rewindmq-lock"
    locked.mkdir(mode=0o700)
    (locked / LOCK).symlink_to(elsewhere / LOCK)
    within = abandoned(scratch)
    (within / "link").symlink_to(elsewhere)
    assert remove_abandoned() == [within]
    assert sorted(path.name for path in scratch.iterdir()) == ["rewindmq-link", "rewindmq-lock"]
    assert (elsewhere / "kept").read_text() == "x"


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / LOCK).unlink(),
        lambda folder: folder.chmod(0o770),
        lambda folder: (folder / LOCK).chmod(0o606),
        lambda folder: [(folder / LOCK).unlink(), (folder / LOCK).mkdir()],
        lambda folder: folder.rename(folder.with_name("other-left")),
    ],
    ids=["no lock", "others write to it", "others write to the lock", "folder", "another name"],
)
def test_a_folder_that_may_be_no_folder_of_ours_stays(
    scratch: Path, change: Callable[[Path], object]
) -> None:
    change(abandoned(scratch))
    assert remove_abandoned() == []
    assert len(list(scratch.iterdir())) == 1


def test_a_lock_that_is_a_pipe_is_no_lock_and_holds_nothing_up(scratch: Path) -> None:
    folder = abandoned(scratch)
    (folder / LOCK).unlink()
    os.mkfifo(folder / LOCK, 0o600)
    assert remove_abandoned() == []
    assert folder.exists()


def test_the_folder_of_another_user_stays(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = abandoned(scratch)
    with monkeypatch.context() as another:
        another.setattr(os, "getuid", lambda: os.geteuid() + 1)
        assert remove_abandoned() == []
    assert remove_abandoned() == [folder]


def test_an_error_leaves_a_folder_to_the_next_call(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = abandoned(scratch, "rewindmq-a"), abandoned(scratch, "rewindmq-b")
    (first / "file").touch()
    unlink = os.unlink

    def fail(name: str, *, dir_fd: int) -> None:
        if name == "file":
            raise PermissionError
        unlink(name, dir_fd=dir_fd)

    with monkeypatch.context() as failing:
        failing.setattr(os, "unlink", fail)
        assert remove_abandoned() == [second]
    assert remove_abandoned() == [first]


def test_a_folder_for_temporary_files_that_is_gone_is_no_error(scratch: Path) -> None:
    scratch.rmdir()
    assert remove_abandoned() == []
