"""What a query really read, told by its tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.files import FileEntry, ReadableFiles, open_files


class Counters(NamedTuple):
    """Sums over the tasks of one query.

    Attributes:
        bytes_read: from the store's and the index's files, planning included.
        bytes_planning: of these, what was read to find out what to read.
        records: rows given to Spark.
        ranges: separate parts of the log that were read.
    """

    tasks: int
    bytes_read: int
    bytes_planning: int
    records: int
    ranges: int


class CountingFiles:
    """ReadableFiles that count what is read. Only what a reader of stores needs; pickles with its count."""

    def __init__(self, files: ReadableFiles) -> None:
        self._files = files
        self.bytes_read = 0

    def list(self, folder: str) -> list[FileEntry]:
        return self._files.list(folder)

    def entry(self, path: str) -> FileEntry | None:
        return self._files.entry(path)

    def read(self, path: str, offset: int, length: int) -> bytes:
        data = self._files.read(path, offset, length)
        self.bytes_read += len(data)
        return data

    def data_range(self, path: str, offset: int) -> tuple[int, int] | None:
        return self._files.data_range(path, offset)

    def read_all(self, path: str) -> bytes | None:
        data = self._files.read_all(path)
        self.bytes_read += len(data or b"")
        return data


def write_counters(folder: str, task: int, counters: Counters) -> None:
    """Leave one task's figures; a task that is tried again replaces them."""
    files, root = open_files(folder)
    files.make_folder(root)
    files.publish(f"{root}/task-{task:06d}.json", json.dumps(counters._asdict()).encode())


def read_counters(folder: str | Path) -> Counters:
    """The sum of what the tasks of one query left.

    Raises:
        PipelineError: there is nothing.
    """
    files, root = open_files(folder)
    found = [
        json.loads(files.read_all(f"{root}/{entry.name}") or b"{}")
        for entry in files.list(root)
        if entry.name.startswith("task-") and entry.name.endswith(".json")
    ]
    if not found:
        raise PipelineError(f"there are no counters in {root}")
    return Counters(*(sum(task[name] for task in found) for name in Counters._fields))
