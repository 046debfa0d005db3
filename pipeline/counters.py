"""Counters of the bytes, records and ranges that a query reads, summed over its tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.files import FileEntry, ReadableFiles, open_files


class Counters(NamedTuple):
    """Sums over the tasks of one query.

    Attributes:
        bytes_read: bytes read from the files of store and index, planning included.
        bytes_planning: the part of ``bytes_read`` that was read to plan the query.
        records: rows given to Spark.
        ranges: separate parts of the log that tasks read.
    """

    tasks: int
    bytes_read: int
    bytes_planning: int
    records: int
    ranges: int


class CountingFiles:
    """ReadableFiles that count the bytes they read.

    Implements only the methods that a reader of stores needs. A pickled copy has the count, too.
    """

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
    """Write one task's counters; a retried task replaces its earlier ones."""
    files, root = open_files(folder)
    files.make_folder(root)
    files.publish(f"{root}/task-{task:06d}.json", json.dumps(counters._asdict()).encode())


def read_counters(folder: str | Path) -> Counters:
    """Return the sum of the counters that the tasks of one query wrote.

    Raises:
        PipelineError: the folder holds no counters.
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
