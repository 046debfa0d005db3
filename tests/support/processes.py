"""Processes that tests start: their children, and waiting for what no event tells of."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

# Seconds after which a test that hangs fails.
PATIENCE: Final = 60.0
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
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert process.poll() is None, f"it ended with code {process.returncode}"
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(_LOOK_SECONDS)
