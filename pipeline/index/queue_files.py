"""Writes the files of one consume queue and of its time index, in order.

The rules are RocketMQ's (docs/spec/store.md 4.4). ``broker.store.consume_queue.queue`` follows the same rules
when it builds entries from the log.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from rewindmq.broker.store.consume_queue.queue import FILLER_SIZE
from rewindmq.broker.store.files.mapped_file import file_name
from rewindmq.broker.store.layout.queue_path import queue_path
from rewindmq.broker.store.layout.time_index import FOLDER as TIME_FOLDER
from rewindmq.pipeline.files import Files
from rewindmq.pipeline.index.queue_pieces import QUEUE_ENTRY, TIME
from rewindmq.pipeline.snapshot.snapshot import PositionedFile, positioned_files

Entries = npt.NDArray[np.void]
Times = npt.NDArray[Any]

# This many gaps are listed; all are counted.
GAPS_SHOWN: Final = 20
QUEUE_FOLDER: Final = "consumequeue"


class Gap(NamedTuple):
    """A place where the queue offsets of a queue's records are not consecutive.

    Attributes:
        found: queue offset that the record states.
        number: number of the entry, here and at a broker that builds the queue from the log.
    """

    topic: str
    queue_id: int
    number: int
    found: int
    physical_offset: int


class QueueWriter:
    """Writes one queue. Holds the entries and times of one file in memory.

    Attributes:
        gap_count: places where entries were renumbered, as a broker does.
        gaps: the first of them.
        repeated: records skipped because the queue already has their queue offset.
        entries: entries written, without the filler before the first message.
        files_linked: files linked from the earlier run.
        bytes_written: bytes written, including those copied from the continued file.
    """

    def __init__(
        self,
        files: Files,
        target: str,
        topic: str,
        queue_id: int,
        *,
        file_bytes: int,
        previous: str | None,
        log_begin: int = 0,
    ) -> None:
        """
        Args:
            target: folder for ``consumequeue/`` and ``timeindex/``.
            file_bytes: size of a consume queue file, a multiple of the entry size.
            previous: target folder of an earlier run: its files are linked, and its last file is continued.
            log_begin: files whose records all lie before it are left out.
        """
        assert file_bytes % QUEUE_ENTRY.itemsize == 0
        self._files = files
        self._target = target
        self._queue = queue_path(topic, queue_id)
        self.topic = topic
        self.queue_id = queue_id
        self._file_entries = file_bytes // QUEUE_ENTRY.itemsize
        self._entries = np.zeros(self._file_entries, QUEUE_ENTRY)
        self._times = np.zeros(self._file_entries, TIME)
        # Index of the first entry of the current file, and the number of its entries so far.
        self._file_index = 0
        self._filled = 0
        self._is_begun = False
        # Queue offset of a record minus the index of its entry.
        self._shift = 0
        self.gap_count = 0
        self.gaps: list[Gap] = []
        self.repeated = 0
        self.entries = 0
        self.files_linked = 0
        self.bytes_written = 0
        if previous is not None:
            self._go_on(previous, log_begin)

    @property
    def next_index(self) -> int:
        """Index of the next entry."""
        return self._file_index + self._filled

    def _go_on(self, previous: str, log_begin: int) -> None:
        kept = kept_files(self._files, f"{previous}/{QUEUE_FOLDER}/{self._queue}", log_begin)
        if not kept:
            return
        self._is_begun = True
        for file in kept[:-1]:
            link_file(self._files, previous, self._target, self._queue, file)
        self.files_linked = len(kept) - 1
        last = kept[-1]
        self._file_index = last.base // QUEUE_ENTRY.itemsize
        found = np.frombuffer(self._files.read(last.path, 0, last.size), QUEUE_ENTRY)
        self._filled = int(np.searchsorted(found["size"] <= 0, True))
        if self._filled == self._file_entries:
            link_file(self._files, previous, self._target, self._queue, last)
            self.files_linked += 1
            self._file_index += self._file_entries
            self._filled = 0
            return
        self._entries[: self._filled] = found[: self._filled]
        path = f"{previous}/{TIME_FOLDER}/{self._queue}/{file_name(self._file_index * TIME.itemsize)}"
        times = np.frombuffer(self._files.read(path, 0, self._filled * TIME.itemsize), TIME)
        self._times[: self._filled] = times

    def add(self, offset: int, entries: Entries, times: Times) -> None:
        """Add a piece; pieces come in the order of the log.

        Args:
            offset: queue offset of the first entry.
            entries: shape (n,), n at least 1.
            times: store timestamps, ms, shape (n,).
        """
        if not self._is_begun:
            self._start_at(offset)
        if offset == 0 < self.next_index:
            # Offset 0 again: the topic was deleted and created again. A broker starts over, too.
            self._start_over()
        known = min(max(self.next_index - offset, 0), len(entries))
        self.repeated += known
        entries, times = entries[known:], times[known:]
        if len(entries):
            if offset + known > self.next_index:
                self._report_gap(offset + known, entries)
            self._append(entries, times)

    def _report_gap(self, found: int, entries: Entries) -> None:
        if found - self.next_index == self._shift:
            return
        self._shift = found - self.next_index
        self.gap_count += 1
        position = int(entries["position"][0])
        if len(self.gaps) < GAPS_SHOWN:
            self.gaps.append(Gap(self.topic, self.queue_id, self.next_index, found, position))

    def _start_over(self) -> None:
        for folder in (QUEUE_FOLDER, TIME_FOLDER):
            self._files.remove_tree(f"{self._target}/{folder}/{self._queue}")
        self._entries[:] = 0
        self._times[:] = 0
        self._file_index = self._filled = self._shift = 0
        self.entries = self.files_linked = 0

    def _start_at(self, offset: int) -> None:
        self._is_begun = True
        self._filled = offset % self._file_entries
        self._file_index = offset - self._filled
        self._entries["size"][: self._filled] = FILLER_SIZE

    def _append(self, entries: Entries, times: Times) -> None:
        self.entries += len(entries)
        while len(entries):
            if self._filled == self._file_entries:
                self._write()
                self._file_index += self._file_entries
                self._filled = 0
                self._entries[:] = 0
                self._times[:] = 0
            count = min(len(entries), self._file_entries - self._filled)
            place = slice(self._filled, self._filled + count)
            self._entries[place], self._times[place] = entries[:count], times[:count]
            self._filled += count
            entries, times = entries[count:], times[count:]

    def close(self) -> None:
        """Write the last file."""
        if self._filled:
            self._write()

    def _write(self) -> None:
        name = file_name(self._file_index * QUEUE_ENTRY.itemsize)
        path = f"{self._target}/{QUEUE_FOLDER}/{self._queue}/{name}"
        mtime_ms = int(self._times[self._filled - 1]) if self._filled else 0
        self._write_file(
            path, self._entries[: self._filled].tobytes(), self._file_entries * QUEUE_ENTRY.itemsize, mtime_ms
        )
        path = f"{self._target}/{TIME_FOLDER}/{self._queue}/{file_name(self._file_index * TIME.itemsize)}"
        data = self._times[: self._filled].tobytes()
        self._write_file(path, data, self._file_entries * TIME.itemsize, mtime_ms)

    def _write_file(self, path: str, data: bytes, size: int, mtime_ms: int) -> None:
        with self._files.create(path) as file:
            file.write(data)
            self._files.fill(file, size - len(data))
        self._files.sync(path)
        self._files.set_mtime(path, mtime_ms)
        self.bytes_written += len(data)


def kept_files(files: Files, folder: str, log_begin: int) -> list[PositionedFile]:
    """Return a queue's files, without the first ones whose records all lie before ``log_begin``.

    The last one always stays (docs/spec/store.md 11.2).
    """
    found = positioned_files(files, folder)
    first = 0
    while first < len(found) - 1:
        last_entry = files.read(
            found[first].path, found[first].size - QUEUE_ENTRY.itemsize, QUEUE_ENTRY.itemsize
        )
        if np.frombuffer(last_entry, QUEUE_ENTRY)["position"][0] >= log_begin:
            break
        first += 1
    return found[first:]


def link_file(files: Files, previous: str, target: str, queue: str, file: PositionedFile) -> None:
    """Link a file of ``previous`` into ``target``, with its part of the time index if there is one."""
    times = f"{TIME_FOLDER}/{queue}/{file_name(file.base // QUEUE_ENTRY.itemsize * TIME.itemsize)}"
    files.link(file.path, f"{target}/{QUEUE_FOLDER}/{queue}/{file.path.rpartition('/')[2]}")
    if files.entry(f"{previous}/{times}") is not None:
        files.link(f"{previous}/{times}", f"{target}/{times}")
