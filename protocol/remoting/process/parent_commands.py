"""Follows the commands of a server process's parent, which come as lines of JSON on standard input.

| line | the process |
|---|---|
| ``{"freeze": FOLDER, "number": N}`` | writes its state, and does nothing until the next line |
| ``{"diskFull": true, "number": N}`` | acts as if its disk were full; with false, as the disk is |
| ``{"aheadMs": MS, "number": N}`` | moves its wall clock ahead of the system's by MS; 0 moves it back |

It answers ``{"done": N}`` on standard output as soon as it obeys, or ``{"failed": N, "reason": ...}``. Other
lines are ignored. Nobody else can send commands: the pipe belongs to the parent.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any, Final, Protocol, runtime_checkable

import msgspec

from rewindmq.protocol.command import DECODE_FAILURES
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.remoting.runtime import SystemClock

_READ_BYTES: Final = 4_096
_MAX_LINE_BYTES: Final = 65_536


class TravellingClock(SystemClock):
    """The system's clocks; the wall clock can be moved.

    ``monotonic`` does not move, so that no connection, lock or registration expires.

    Attributes:
        ahead_ms: how far the wall clock is ahead of the system's.
    """

    __slots__ = ("ahead_ms",)

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__(scale)
        self.ahead_ms = 0

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self.ahead_ms


class _Command(msgspec.Struct, rename="camel"):
    number: int
    freeze: str | None = None
    disk_full: bool | None = None
    ahead_ms: int | None = None


@runtime_checkable
class ControlledService(Protocol):
    """A service that its parent can control."""

    def write_state(self, folder: Path) -> None:
        """Write into a folder what a copy needs besides the files. Raise OSError or RewindMQError."""

    def set_disk_full(self, is_full: bool) -> None:
        """Act as if the disk were full, or no longer."""

    def clock_changed(self, moved_ms: int) -> None:
        """Look at the wall clock again: what is due has to happen now.

        Args:
            moved_ms: by how much the clock was moved ahead, as if so much time had passed. A negative number
                sets it back, and no time has passed.
        """


class ParentCommands:
    """Follows the parent's lines; used on the event loop, which it stops while the service is frozen.

    Args:
        clock: the process's clock; its wall clock follows the parent.
        descriptor: standard input.
    """

    def __init__(self, service: ControlledService, clock: TravellingClock, descriptor: int) -> None:
        self._service = service
        self._clock = clock
        self._descriptor = descriptor
        self._unread = b""

    def read(self) -> bool:
        """Read what the parent has written and follow it; return False if the parent has ended."""
        if not self._read_some():
            return False
        while b"\n" in self._unread:
            self._follow(self._take_line())
        # A parent that never ends its line must not fill the memory.
        self._unread = self._unread[-_MAX_LINE_BYTES:]
        return True

    def _follow(self, line: bytes) -> None:
        try:
            command = msgspec.json.decode(line, type=_Command)
        except DECODE_FAILURES:
            return
        try:
            self._obey(command)
        except (OSError, RewindMQError) as error:
            _answer({"failed": command.number, "reason": str(error)})
            return
        _answer({"done": command.number})
        if command.freeze is not None:
            while b"\n" not in self._unread and self._read_some():
                pass
            self._take_line()

    def _obey(self, command: _Command) -> None:
        if command.freeze is not None:
            self._service.write_state(Path(command.freeze))
        if command.disk_full is not None:
            self._service.set_disk_full(command.disk_full)
        if command.ahead_ms is not None:
            moved_ms = command.ahead_ms - self._clock.ahead_ms
            self._clock.ahead_ms = command.ahead_ms
            self._service.clock_changed(moved_ms)

    def _take_line(self) -> bytes:
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _read_some(self) -> bool:
        try:
            data = os.read(self._descriptor, _READ_BYTES)
        except OSError:
            return False
        self._unread += data
        return bool(data)


def _answer(answer: dict[str, Any]) -> None:
    print(json.dumps(answer, separators=(",", ":")), flush=True)
