"""The contents that the files under ``config/`` may have after a power failure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rewindmq.broker.store.tables.config_file import ConfigFile
from rewindmq.protocol.codec import fastjson
from rewindmq.race.sim import SimDisk
from tools.crash_points.operations import FolderSynced, Operation, Renamed, Rewritten


class TableVersions:
    """The last durable content of each table file, and those that followed."""

    def __init__(self) -> None:
        self._written: dict[Path, bytes] = {}
        self._versions: dict[Path, list[bytes | None]] = {}

    def apply(self, operation: Operation) -> None:
        """Continue with the next operation of the journal."""
        match operation:
            case Rewritten(path, _, data):
                self._written[path] = data
            case Renamed(path, target) if target.suffix == ".json":
                self._versions.setdefault(target, [None]).append(self._written[path])
            case FolderSynced(folder):
                for path, versions in self._versions.items():
                    if path.parent == folder:
                        del versions[:-1]

    def allowed(self) -> dict[str, list[Any]]:
        """Return the contents that each file may have; None if it may be missing."""
        return {
            path.name: [None if data is None else fastjson.loads(data) for data in versions]
            for path, versions in self._versions.items()
        }

    def loaded(self, disk: SimDisk) -> dict[str, Any]:
        """Return what a broker loads from each file."""
        return {path.name: ConfigFile(path, disk).load(lambda content: content) for path in self._versions}
