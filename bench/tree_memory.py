"""Peak memory of this process and all below it: Spark's Java and its Python workers (Linux)."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path
from typing import Final, Self

_SAMPLE_SECONDS: Final = 0.2


class PeakMemory:
    """Looks several times a second, from when it is entered until it is left.

    Attributes:
        megabytes: the most so far, in MB of 10^6 bytes.
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
    """A process and those it started, and so on."""
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
    """Proportional set size: a page that several processes share counts once for all of them."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024 / 1e6
    return 0.0
