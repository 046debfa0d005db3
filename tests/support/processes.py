"""Processes that tests start or watch: their children, their end, and waiting for what no event tells of."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import pytest

# Seconds after which a test that hangs fails.
WAIT_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.01

needs_proc: Final = pytest.mark.skipif(
    not Path("/proc/self/task").exists(), reason="needs Linux's list of processes"
)


def children(pid: int) -> set[int]:
    """Return the processes that a process, by any of its threads, started and that still exist."""
    found: set[int] = set()
    # The process, or a thread of it, may have ended since.
    with contextlib.suppress(FileNotFoundError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                found.update(map(int, (thread / "children").read_text().split()))
    return found


def wait_until(process: subprocess.Popen[str] | subprocess.Popen[bytes], holds: Callable[[], bool]) -> None:
    """Wait until something holds while a process runs.

    Raises:
        AssertionError: the process ended before, or a minute passed.
    """
    deadline = time.monotonic() + WAIT_SECONDS
    while not holds():
        assert process.poll() is None, f"it ended with code {process.returncode}"
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(_LOOK_SECONDS)


class Watched:
    """Processes known by pid, held so that a pid used again is not mistaken for one of them."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._descriptors = [os.pidfd_open(pid) for pid in pids]

    def wait_gone(self) -> None:
        """Wait until every process has ended, whoever its parent is."""
        for descriptor in self._descriptors:
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            assert poll.poll(WAIT_SECONDS * 1_000), "a process is still there"

    def close(self) -> None:
        for descriptor in self._descriptors:
            os.close(descriptor)
