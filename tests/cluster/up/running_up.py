"""``rewindmq up`` as a process of a test."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.processes import WAIT_SECONDS


class RunningUp:
    """An ``up`` that has printed its ready line.

    Attributes:
        ready: the ready line's object.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.process = process
        line = process.stdout.readline()
        assert line, process.stderr and process.stderr.read()
        self.ready: dict[str, Any] = json.loads(line)
        self.namesrv: str = self.ready["namesrv"]["address"]

    @property
    def addresses(self) -> dict[str, str]:
        """The address of each process by name."""
        brokers = {name: broker["address"] for name, broker in self.ready["brokers"].items()}
        return {"namesrv": self.namesrv, **brokers}

    def stop(self) -> None:
        """Stop it with SIGINT; it ends quietly."""
        self.process.send_signal(signal.SIGINT)
        _, errors = self.process.communicate(timeout=WAIT_SECONDS)
        assert (self.process.returncode, errors) == (130, "")


@contextlib.contextmanager
def running_up(directory: Path, *words: str) -> Iterator[RunningUp]:
    """Run ``rewindmq up --dir DIRECTORY --brokers 1 WORDS``; it is killed at the end if it still runs."""
    command = ["up", "--dir", str(directory), "--brokers", "1", "--ready-json", *words]
    with subprocess.Popen(
        [sys.executable, "-m", "rewindmq", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield RunningUp(process)
        finally:
            process.kill()
