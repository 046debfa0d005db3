"""Worker processes of a simulation end with their parent, however it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys

import pytest

from tests.support.processes import WAIT_SECONDS, children, needs_proc, wait_until


@needs_proc
@pytest.mark.slow
def test_a_killed_run_leaves_no_process() -> None:
    arguments = ["rewindmq", "race", "run", "R1", "--repeat", "100000", "--jobs", "2"]
    process = subprocess.Popen(
        [sys.executable, "-m", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        # Two workers, and the pool's resource tracker.
        wait_until(process, lambda: len(children(process.pid)) >= 3)
        process.kill()
        # Each process has inherited the pipe, so the pipe ends with the last one.
        assert process.communicate(timeout=WAIT_SECONDS)[0] == b""
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
