"""A plain listener that never returns keeps no process from ending."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, os, sys, threading
from rewindmq.protocol.remoting.process.runner import run_work
from rewindmq.protocol.remoting.process.options import ProcessOptions

def block():
    # Not by print: who is told may end the process before this thread has let go of the stream's lock.
    os.write(1, b"blocked\\n")
    threading.Event().wait()

async def work(runtime, stopping):
    call = asyncio.ensure_future(runtime.workers.run(block))
    await stopping.wait()
    call.cancel()
    return 0

sys.exit(run_work(work, ProcessOptions()))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_call_that_blocks_for_ever_does_not_keep_the_process_alive(number: signal.Signals) -> None:
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "blocked\n"
        process.send_signal(number)
        try:
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
        assert (process.returncode, errors) == (0, "")
