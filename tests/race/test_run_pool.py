"""Processes that simulate for another one end with it, however that ends."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs Linux's /proc")


def test_a_killed_run_leaves_no_process(tmp_path: Path) -> None:
    arguments = ["rewindmq", "race", "run", "R1", "--repeat", "100000", "--jobs", "2"]
    mark = f"RACE_TEST={tmp_path}"
    process = subprocess.Popen(
        ["env", mark, sys.executable, "-m", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    with process:
        # Itself, two of the pool, and the pool's resource tracker.
        _wait(process, lambda: len(_marked(mark)) >= 4)
        process.send_signal(signal.SIGKILL)
    with subprocess.Popen(["sleep", "30"]) as watch:
        _wait(watch, lambda: not _marked(mark))
        watch.kill()


def _wait(process: subprocess.Popen[bytes], is_reached: Callable[[], bool]) -> None:
    """Look again and again while the process lives, 30 s at most."""
    for _ in range(600):
        if is_reached():
            return
        try:
            process.wait(0.05)
        except subprocess.TimeoutExpired:
            continue
        break
    raise AssertionError("it did not happen")


def _marked(mark: str) -> list[str]:
    """The processes that were started with this in their environment."""
    marked = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark.encode() in environ.read_bytes():
                marked.append(environ.parent.name)
        except OSError:
            continue
    return marked
