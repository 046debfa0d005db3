"""Freezes a server process for its parent, which copies its files meanwhile.

The parent writes ``{"freeze": FOLDER, "number": N}`` to standard input. The process writes its state into the
folder, answers ``{"frozen": N}`` on standard output, and does nothing until the next line. It answers
``{"failed": N, "reason": ...}`` and goes on if the state cannot be written. Other lines are ignored.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final, Protocol, runtime_checkable

from rewindmq.protocol.errors import RewindMQError

_READ_BYTES: Final = 4_096
_MAX_LINE_BYTES: Final = 65_536


@runtime_checkable
class Freezable(Protocol):
    """A service whose files can be copied while its event loop stands still."""

    def write_state(self, folder: Path) -> None:
        """Write into a folder what a copy needs besides the files. Raise OSError or RewindMQError."""


class FreezeCommands:
    """Follows the parent's lines; used on the event loop, which it stops while the service is frozen."""

    def __init__(self, service: Freezable, descriptor: int) -> None:
        self._service = service
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
            command: Any = json.loads(line)
            folder, number = Path(command["freeze"]), int(command["number"])
        except (ValueError, TypeError, KeyError):
            return
        try:
            self._service.write_state(folder)
        except (OSError, RewindMQError) as error:
            _answer({"failed": number, "reason": str(error)})
            return
        _answer({"frozen": number})
        while b"\n" not in self._unread and self._read_some():
            pass
        self._take_line()

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
