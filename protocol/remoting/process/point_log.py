"""Writes the trace points of a process as lines of JSON for another process."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any

from rewindmq.protocol.files.private import FILE_MODE
from rewindmq.protocol.points import Point
from rewindmq.protocol.remoting.runtime import Clock

_log = logging.getLogger(__name__)


class PointLog:
    """Appends one line per point to a file or a named pipe; used as ``Runtime.probe``.

    A line is ``{"time": ms since 1970, "at": protocol seconds, "kind": "broker.commit_received",
    "details": {...}}``. ``at`` counts from the same moment in all processes of a machine with the same time
    scale, so that their lines can be merged. If writing fails, one warning goes to the log and the process
    continues.

    Raises:
        OSError: the file cannot be opened. Opening a named pipe waits for its reader.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, FILE_MODE)
        self._is_broken = False

    def __call__(self, point: Point, details: dict[str, Any]) -> None:
        if self._is_broken:
            return
        clock = self._clock
        line = {"time": clock.now_ms(), "at": clock.monotonic(), "kind": point, "details": details}
        data = json.dumps(line, separators=(",", ":")).encode() + b"\n"
        try:
            # A pipe accepts a short line whole or not at all.
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError as error:
            self._is_broken = True
            _log.warning("writing trace points to %s stopped: %s", self._path, error.strerror)
