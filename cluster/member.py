"""One member of a local cluster: an OS process, its ready line, its lifeline and its log.

The member's standard input is a pipe that only the parent holds open. When the parent ends in whatever way,
the kernel closes it and the member stops by itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final

from rewindmq.cluster.errors import ClusterError
from rewindmq.protocol.remoting.runtime import Clock, SystemClock

STOP_SECONDS: Final = 10.0
_READY_LINE_BYTES: Final = 65_536
_LOG_TAIL_LINES: Final = 10
_LOG_TAIL_BYTES: Final = 16_384


class Member:
    """A name server or broker process.

    Args:
        name: ``namesrv`` or the broker's name.
        log_path: standard error goes here, appended to over restarts.
        store_path: the directory of what it keeps.

    Attributes:
        address: ``host:port`` as bound by the last start; "" before the first.
    """

    def __init__(self, name: str, log_path: Path, store_path: Path, clock: Clock | None = None) -> None:
        self.name = name
        self.log_path = log_path
        self.store_path = store_path
        self.address = ""
        self._clock = clock or SystemClock()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        """Whether the process exists."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process's id.

        Raises:
            ClusterError: it is not running.
        """
        if self._process is None or not self.is_running:
            raise ClusterError(f"{self.name} is not running")
        return self._process.pid

    def launch(self, arguments: Sequence[str]) -> None:
        """Begin to run ``rewindmq ARGUMENTS``; returns before it serves."""
        assert not self.is_running, f"{self.name} runs already"
        self._forget()
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and arguments
                [sys.executable, "-m", "rewindmq", *arguments, "--exit-with-parent"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                # Ctrl-C at the terminal is the parent's to handle: it stops the members in order.
                process_group=0,
            )

    def tell(self, line: str) -> None:
        """Hand a line to a member that waits for it on standard input; a dead one is found out later."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._pipe("stdin").fileno(), line.encode() + b"\n")

    def wait_ready(self, timeout: float) -> None:
        """Wait until the member serves, and learn its address.

        Raises:
            ClusterError: it ended first, or said something else, or nothing within ``timeout`` seconds.
        """
        line = self._read_line(timeout)
        try:
            self.address = str(json.loads(line)["address"])
        except (ValueError, KeyError, TypeError):
            raise ClusterError(f"{self.name} printed no ready line: {line[:200]!r}") from None

    def kill(self) -> None:
        """SIGKILL: no clean-up, no goodbye; returns when the process is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._forget()

    def abort(self) -> None:
        """SIGKILL without waiting; for another thread than the one that waits for the member."""
        if self._process is not None:
            self._process.kill()

    def begin_stop(self) -> None:
        """Ask the process to stop in order, without waiting for it."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)

    def finish_stop(self, timeout: float = STOP_SECONDS) -> None:
        """Wait for a stop asked for before; kills what is still there after ``timeout`` seconds."""
        if self._process is not None:
            try:
                self._process.wait(timeout)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._forget()

    def log_tail(self) -> tuple[str, ...]:
        """The last lines of the log."""
        try:
            with self.log_path.open("rb") as log:
                log.seek(0, os.SEEK_END)
                log.seek(max(0, log.tell() - _LOG_TAIL_BYTES))
                lines = log.read().decode(errors="replace").splitlines()
        except FileNotFoundError:
            return ()
        return tuple(lines[-_LOG_TAIL_LINES:])

    def _read_line(self, timeout: float) -> str:
        deadline = self._clock.monotonic() + timeout
        descriptor = self._pipe("stdout").fileno()
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        line = b""
        while not line.endswith(b"\n") and len(line) < _READY_LINE_BYTES:
            left = deadline - self._clock.monotonic()
            if left <= 0 or not poll.poll(left * 1_000):
                raise ClusterError(f"{self.name} did not serve within {timeout:g} s", self.log_tail())
            data = os.read(descriptor, _READY_LINE_BYTES)
            if not data:
                raise self._died()
            line += data
        return line.decode(errors="replace").rstrip("\n")

    def _died(self) -> ClusterError:
        assert self._process is not None
        code = self._process.wait()
        how = f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
        tail = self.log_tail()
        return ClusterError(f"{self.name} did not start ({how}): {tail[-1] if tail else 'no log'}", tail)

    def _pipe(self, which: str) -> IO[bytes]:
        assert self._process is not None, f"{self.name} was not launched"
        pipe: IO[bytes] | None = getattr(self._process, which)
        assert pipe is not None
        return pipe

    def _forget(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                pipe.close()
