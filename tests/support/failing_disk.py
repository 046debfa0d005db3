"""A simulated disk whose calls fail while a test says so; it skips what a failed sync did not write."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from rewindmq.broker.store.files.disk import Disk
from rewindmq.race.sim import SimDisk

# The calls that a running broker makes.
OPERATIONS = (
    "make_folder",
    "list_folder",
    "exists",
    "read",
    "create",
    "map",
    "allocate",
    "sync",
    "sync_folder",
    "rewrite",
    "write",
    "replace",
    "remove",
    "mtime_ms",
    "set_mtime_ms",
    "used_ratio",
)
_AT_START = ("touch", "data_beyond")
_PAGE = 4_096


class FailingDisk:
    """Behaves as Linux does after a failed sync: its pages count as written, and the next sync skips them.

    Attributes:
        failures: how many calls have failed, by operation.
    """

    def __init__(self, now_ms: Callable[[], int], disk: SimDisk | None = None) -> None:
        self._disk = disk or SimDisk(now_ms)
        self._now_ms = now_ms
        self._failing: dict[str, int] = {}
        # What a power failure leaves of mapped files.
        self._durable: dict[Path, bytes] = {}
        # The pages that count as written but are not, with their content then.
        self._skipped: dict[Path, dict[int, bytes]] = {}
        self.failures: dict[str, int] = {}

    @property
    def disk(self) -> Disk:
        """The disk to give to a store."""
        return cast("Disk", self)

    def fail(self, number: int, *operations: str) -> None:
        """Let every call of these operations fail with an errno from now on."""
        self._failing.update(dict.fromkeys(operations, number))

    def mend(self) -> None:
        """Let every call succeed again."""
        self._failing.clear()

    def after_power_failure(self) -> SimDisk:
        """Return the disk that a restart would find if the power failed now."""
        found = SimDisk(self._now_ms)
        for path in self._disk.files():
            data = self._disk.read(path)
            assert data is not None
            if path in self._durable:
                found.create(path, len(data))
                found.map(path, len(data))[:] = self._durable[path]
            else:
                found.make_folder(path.parent)
                found.write(path, data)
        return found

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._disk, name)
        if name not in OPERATIONS and name not in _AT_START:
            return call

        def checked(path: Path, *args: Any) -> Any:
            if name not in self._failing:
                return getattr(self, f"_{name}", call)(path, *args)
            self.failures[name] = self.failures.get(name, 0) + 1
            if name == "sync":
                self._skip(path)
            number = self._failing[name]
            raise OSError(number, os.strerror(number), str(path))

        return checked

    def _create(self, path: Path, size: int) -> None:
        self._disk.create(path, size)
        self._durable[path] = bytes(size)

    def _remove(self, path: Path) -> None:
        self._disk.remove(path)
        self._durable.pop(path, None)
        self._skipped.pop(path, None)

    def _skip(self, path: Path) -> None:
        data, durable = self._pages(path)
        changed = {page: data[page] for page in data if data[page] != durable[page]}
        self._skipped.setdefault(path, {}).update(changed)

    def _rewrite(self, path: Path, start: int, end: int) -> None:
        self._disk.rewrite(path, start, end)
        for page in range(start // _PAGE, -(-end // _PAGE)):
            self._skipped.get(path, {}).pop(page, None)

    def _sync(self, path: Path) -> None:
        self._disk.sync(path)
        data, durable = self._pages(path)
        for page, seen in self._skipped.get(path, {}).items():
            # A page that was written since is written as a whole.
            if data[page] == seen:
                data[page] = durable[page]
        self._durable[path] = b"".join(data.values())

    def _pages(self, path: Path) -> tuple[dict[int, bytes], dict[int, bytes]]:
        data = self._disk.read(path)
        assert data is not None, path
        durable = self._durable.setdefault(path, bytes(len(data)))
        pages = range(-(-len(data) // _PAGE))
        return (
            {page: data[page * _PAGE : (page + 1) * _PAGE] for page in pages},
            {page: durable[page * _PAGE : (page + 1) * _PAGE] for page in pages},
        )
