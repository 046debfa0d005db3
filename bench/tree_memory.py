"""Peak memory of this process and its descendants, such as Spark's Java and Python workers (Linux)."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path
from typing import Final, Self

_SAMPLE_SECONDS: Final = 0.2


class PeakMemory:
    """Samples the memory several times a second inside its ``with`` block.

    Attributes:
        megabytes: the peak so far, in MB of 10^6 bytes.
    """

    def __init__(self) -> None:
        self.megabytes = 0.0
        self._ended = threading.Event()
        self._watcher = threading.Thread(target=self._watch)

    def __enter__(self) -> Self:
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._watcher.join()

    def _watch(self) -> None:
        while True:
            self.megabytes = max(self.megabytes, sum(map(_megabytes, _tree(os.getpid()))))
            if self._ended.wait(_SAMPLE_SECONDS):
                return


def _tree(root: int) -> list[int]:
    """Return a process and all its descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found


def _megabytes(pid: int) -> float:
    """Return the proportional set size, which divides a shared page among its processes."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024 / 1e6
    return 0.0
