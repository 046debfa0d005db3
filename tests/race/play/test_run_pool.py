"""Processes that simulate for another one end with it, however that ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys

from tests.support.processes import WAIT_SECONDS, children, needs_proc, wait_until


@needs_proc
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
        # Two of the pool, and the pool's resource tracker.
        wait_until(process, lambda: len(children(process.pid)) >= 3)
        process.kill()
        # Each of them has inherited the pipe: it ends with the last of them.
        assert process.communicate(timeout=WAIT_SECONDS)[0] == b""
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
