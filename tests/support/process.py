"""``rewindmq broker`` and ``rewindmq namesrv`` as processes of a test."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

# Seconds; only turns a hang into a failure.
TIMEOUT = 60


class ServerProcess:
    """A server that has printed its ready line.

    Attributes:
        ready: the ready line's object.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        self.process = process
        self.pid = process.pid
        self._stdin, self._errors = process.stdin, process.stderr
        line = process.stdout.readline()
        assert line, process.stderr.read()
        self.ready: dict[str, Any] = json.loads(line)
        self.address: str = self.ready["address"]
        host, _, port = self.address.rpartition(":")
        self.place = host, int(port)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> list[str]:
        """Send a signal and wait for exit code 0; returns the lines of standard error."""
        self.process.send_signal(number)
        return self.ended()

    def leave(self) -> list[str]:
        """Close its standard input and wait for exit code 0; returns the lines of standard error."""
        self._stdin.close()
        # ``Popen`` flushes what it believes to be open.
        self.process.stdin = None
        return self.ended()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(TIMEOUT)

    def ended(self) -> list[str]:
        errors = self._errors.read().splitlines()
        assert self.process.wait(TIMEOUT) == 0, errors
        return errors


def command(*words: object) -> list[str]:
    """The command line of ``rewindmq WORDS``."""
    return [sys.executable, "-m", "rewindmq", *map(str, words)]


@contextlib.contextmanager
def serving(*words: object, before: Sequence[str] = ()) -> Iterator[ServerProcess]:
    """A server that is ready; killed at the end if it is still there.

    Args:
        before: the words of a program that runs the server's command in its own place.
    """
    with subprocess.Popen(
        [*before, *command(*words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NAMESRV_ADDR": ""},
    ) as process:
        try:
            yield ServerProcess(process)
        finally:
            process.kill()


def failing(*words: object) -> tuple[int, str]:
    """The exit code and standard error of a server that does not start, and prints nothing else."""
    result = subprocess.run(
        command(*words), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT
    )
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    return result.returncode, result.stderr
