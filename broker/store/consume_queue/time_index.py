"""The time index: store times by queue offset, so that searches by time need not read the log.

Only RewindMQ has it. The pipeline writes it into a folder of the store; a broker only reads it. Without it, a
broker (RewindMQ or RocketMQ) gets the same results from the commit log.
``layout.time_index`` describes the files.
"""

from __future__ import annotations

import logging
from pathlib import Path

import msgspec

from rewindmq.broker.store.errors import cause_of
from rewindmq.broker.store.files.disk import Disk
from rewindmq.broker.store.files.mapped_file import MappedFile, MmapCache, file_name
from rewindmq.broker.store.layout.queue_path import queue_path
from rewindmq.broker.store.layout.time_index import (
    NOT_KNOWN,
    POSITION_FILE,
    TIME,
    TIME_BYTES,
    TimeIndexPosition,
    file_bytes,
)
from rewindmq.broker.store.log.commit_log import CommitLog
from rewindmq.protocol.command import DECODE_FAILURES

_log = logging.getLogger(__name__)


class TimeIndex:
    """The time index of one store; empty if there is none or it does not match the store's log."""

    def __init__(self, folder: Path, entries_per_file: int, disk: Disk, pool: MmapCache) -> None:
        self._folder = folder
        self._entries_per_file = entries_per_file
        self._file_bytes = file_bytes(entries_per_file)
        self._disk = disk
        self._pool = pool
        self._begin = self._end = 0
        self._is_failing = False
        # None: the file is missing or unusable.
        self._files: dict[tuple[str, int], dict[int, MappedFile | None]] = {}

    def load(self, log: CommitLog) -> None:
        """Load the index if there is one and it matches the log. Call after recovery.

        Raises:
            OSError: a wrong index cannot be removed.
        """
        path = self._folder / POSITION_FILE
        data = self._disk.read(path)
        if data is None:
            return
        try:
            position = msgspec.json.decode(data, type=TimeIndexPosition)
        except DECODE_FAILURES as error:
            _log.error("time index not used: %s: %s", path, error)
            return
        if position.end <= position.begin:
            return
        record = log.record_at(position.last)
        if (
            record is None
            or record.physical_offset + record.size != position.end
            or record.store_timestamp != position.last_store_timestamp
        ):
            _log.warning("time index dropped: the log up to %d does not match %s", position.end, path)
            self._disk.remove(path)
            return
        self._begin, self._end = position.begin, position.end

    @property
    def is_empty(self) -> bool:
        """True if the index has no store times, for example because no pipeline job has written it."""
        return self._begin >= self._end

    def store_time(self, topic: str, queue_id: int, index: int, physical_offset: int) -> int:
        """Return the store timestamp, ms, of the message at ``index``; 0 if unknown.

        Args:
            physical_offset: the entry's log position.
        """
        if not self._begin <= physical_offset < self._end:
            return NOT_KNOWN
        number, place = divmod(index, self._entries_per_file)
        try:
            file = self._file(topic, queue_id, number)
            mapping = None if file is None else file.map or file.open_map()
        except OSError as error:
            if not self._is_failing:
                self._is_failing = True
                _log.error("time index not used for now: %s", cause_of(error))
            return NOT_KNOWN
        self._is_failing = False
        if mapping is None:
            return NOT_KNOWN
        (timestamp,) = TIME.unpack_from(mapping, place * TIME_BYTES)
        return max(int(timestamp), NOT_KNOWN)

    def _file(self, topic: str, queue_id: int, number: int) -> MappedFile | None:
        files = self._files.setdefault((topic, queue_id), {})
        try:
            return files[number]
        except KeyError:
            file = files[number] = self._find(topic, queue_id, number)
            return file

    def close_files(self, topic: str, queue_id: int) -> None:
        """Unmap the files of a queue; the next access finds them again."""
        for file in self._files.pop((topic, queue_id), {}).values():
            if file is not None:
                self._pool.release(file)

    def _find(self, topic: str, queue_id: int, number: int) -> MappedFile | None:
        base = number * self._file_bytes
        folder = self._folder / queue_path(topic, queue_id)
        path = folder / file_name(base)
        sizes = {entry.path: entry.size for entry in self._disk.list_folder(folder) if entry.is_file}
        if path not in sizes:
            return None
        if sizes[path] != self._file_bytes:
            _log.error(
                "%s not used: it has %d bytes, a consume queue file's entries need %d",
                path,
                sizes[path],
                self._file_bytes,
            )
            return None
        return MappedFile(self._pool, path, base, self._file_bytes, 0)
