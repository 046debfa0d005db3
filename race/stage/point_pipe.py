"""Reads the points of a broker process while it runs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

_READ_BYTES: Final = 1 << 18


class PointPipe:
    """A named pipe that passes on the lines written to it.

    Args:
        on_line: called with the decoded value of each line, see ``PointLog``.
    """

    def __init__(self, path: Path, on_line: Callable[[dict[str, Any]], None]) -> None:
        os.mkfifo(path)
        # Open for writing too: otherwise the pipe would end when a broker is killed and started again.
        self._descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self._on_line = on_line
        self._rest = b""
        self._decoder = msgspec.json.Decoder(dict[str, Any])
        asyncio.get_running_loop().add_reader(self._descriptor, self._read)

    def close(self) -> None:
        """Stop reading and close the pipe."""
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)

    def _read(self) -> None:
        data = self._rest + os.read(self._descriptor, _READ_BYTES)
        *lines, self._rest = data.split(b"\n")
        for line in lines:
            self._on_line(self._decoder.decode(line))
