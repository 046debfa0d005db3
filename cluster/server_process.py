"""One process of a local cluster: its start, its ready line, its lifeline and its log.

The process's standard input is a pipe that only the parent holds open. When the parent ends, even by SIGKILL,
the kernel closes the pipe and the process stops by itself.
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
from rewindmq.protocol.files.private import make_private_folder, open_private
from rewindmq.protocol.remoting.runtime import Clock, SystemClock

STOP_SECONDS: Final = 10.0
COMMAND_SECONDS: Final = 10.0
_READY_LINE_BYTES: Final = 65_536
_LOG_TAIL_LINES: Final = 10
_LOG_TAIL_BYTES: Final = 16_384


class ServerProcess:
    """A name server or broker process.

    Args:
        name: ``namesrv`` or the broker's name.
        log_path: the file of its standard error; restarts append to it.
        store_path: the directory of its files.
        inherits: descriptors that the process keeps open until it ends.

    Attributes:
        address: ``host:port`` that the last start bound; "" before the first start.
        is_paused: True from ``pause`` until ``resume`` or the process's end.
    """

    def __init__(
        self,
        name: str,
        log_path: Path,
        store_path: Path,
        clock: Clock | None = None,
        *,
        inherits: Sequence[int] = (),
    ) -> None:
        self.name = name
        self.log_path = log_path
        self.store_path = store_path
        self.address = ""
        self.is_paused = False
        self._inherits = inherits
        self._clock = clock or SystemClock()
        self._process: subprocess.Popen[bytes] | None = None
        self._commands = 0

    @property
    def is_running(self) -> bool:
        """True while the process exists."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process's id.

        Raises:
            ClusterError: the process is not running.
        """
        if self._process is None or not self.is_running:
            raise ClusterError(f"{self.name} is not running")
        return self._process.pid

    def launch(self, arguments: Sequence[str]) -> None:
        """Start ``rewindmq ARGUMENTS`` without waiting until it serves."""
        assert not self.is_running, f"{self.name} runs already"
        self._forget()
        make_private_folder(self.log_path.parent)
        with open_private(self.log_path, "ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and arguments
                [sys.executable, "-m", "rewindmq", *arguments, "--exit-with-parent"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                pass_fds=self._inherits,
                # Ctrl-C at the terminal must reach only the parent, which stops the processes cleanly.
                process_group=0,
            )

    def write_line(self, line: str) -> None:
        """Write a line to the process's standard input. If the process has ended, ``wait_ready`` raises."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._pipe("stdin").fileno(), line.encode() + b"\n")

    def wait_ready(self, timeout: float) -> None:
        """Wait until the process serves, and store its address.

        Raises:
            ClusterError: within ``timeout`` seconds the process ended, printed another line, or printed
                nothing.
        """
        line = self._read_line(timeout)
        try:
            self.address = str(json.loads(line)["address"])
        except (ValueError, KeyError, TypeError):
            raise ClusterError(f"{self.name} printed no ready line: {line[:200]!r}") from None

    def kill(self) -> None:
        """Send SIGKILL and wait until the process has ended."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._forget()

    def abort(self) -> None:
        """Send SIGKILL without waiting; another thread may be waiting for the process."""
        if self._process is not None:
            self._process.kill()

    def pause(self) -> None:
        """Send SIGSTOP and wait until the process has stopped.

        It keeps its connections and does nothing until ``resume``.

        Raises:
            ClusterError: the process is not running.
        """
        pid = self.pid
        os.kill(pid, signal.SIGSTOP)
        # ``Popen`` must find the end of a process that was ended at the same moment.
        os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        self.is_paused = self.is_running

    def resume(self) -> None:
        """Send SIGCONT; a process that is not paused ignores it.

        Raises:
            ClusterError: the process is not running.
        """
        os.kill(self.pid, signal.SIGCONT)
        self.is_paused = False

    def begin_stop(self) -> None:
        """Send SIGTERM, at which the process stops cleanly, without waiting; a paused process is resumed."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.send_signal(signal.SIGCONT)

    def finish_stop(self, timeout: float = STOP_SECONDS) -> None:
        """Wait until the process has ended; kill it after ``timeout`` seconds."""
        if self._process is not None:
            try:
                self._process.wait(timeout)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._forget()

    def log_tail(self) -> tuple[str, ...]:
        """Return the last lines of the log."""
        try:
            with self.log_path.open("rb") as log:
                log.seek(0, os.SEEK_END)
                log.seek(max(0, log.tell() - _LOG_TAIL_BYTES))
                lines = log.read().decode(errors="replace").splitlines()
        except FileNotFoundError:
            return ()
        return tuple(lines[-_LOG_TAIL_LINES:])

    def begin_freeze(self, folder: Path) -> None:
        """Ask the process to write its state into a folder and to do nothing until ``thaw``.

        ``wait_obeyed`` waits until it does so.
        """
        self._begin_command(freeze=str(folder))

    def set_disk_full(self, is_full: bool) -> None:
        """Let a broker act as if its disk were full, or no longer; return once it does.

        Raises:
            ClusterError: the process ended, or did not answer within 10 s.
        """
        self._begin_command(diskFull=is_full)
        self.wait_obeyed()

    def set_clock_ahead(self, milliseconds: int) -> None:
        """Move a broker's wall clock ahead of the system's; return once it is moved; errors as above."""
        self._begin_command(aheadMs=milliseconds)
        self.wait_obeyed()

    def _begin_command(self, **command: object) -> None:
        self._commands += 1
        self.write_line(json.dumps({**command, "number": self._commands}))

    def wait_obeyed(self, timeout: float = COMMAND_SECONDS) -> None:
        """Wait until the process obeys the last command.

        Raises:
            ClusterError: it could not, ended, or did not answer within ``timeout`` seconds.
        """
        while True:
            # Answers to earlier commands may have come after their time-out.
            for line in self._read_line(timeout, "answer").splitlines():
                answer = json.loads(line)
                if answer.get("failed") == self._commands:
                    raise ClusterError(f"{self.name} did not obey: {answer.get('reason')}")
                if answer.get("done") == self._commands:
                    return

    def thaw(self) -> None:
        """Let a frozen process continue; a process that is not frozen ignores it."""
        if self.is_running:
            self.write_line("{}")

    def _read_line(self, timeout: float, what: str = "serve") -> str:
        deadline = self._clock.monotonic() + timeout
        descriptor = self._pipe("stdout").fileno()
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        line = b""
        while not line.endswith(b"\n") and len(line) < _READY_LINE_BYTES:
            left = deadline - self._clock.monotonic()
            if left <= 0 or not poll.poll(left * 1_000):
                raise ClusterError(f"{self.name} did not {what} within {timeout:g} s", self.log_tail())
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
        self.is_paused = False
        if process is not None:
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                pipe.close()
