"""The files of one consume queue and of its time index, written from first to last.

Rules for units are RocketMQ's (docs/spec/store.md 4.4), as ``broker.store.consume_queue`` has them when it
builds units from the log.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from rewindmq.broker.store.consume_queue import FILLER_SIZE
from rewindmq.broker.store.mapped_file import file_name
from rewindmq.broker.store.time_index import FOLDER as TIME_FOLDER
from rewindmq.pipeline.files import Files
from rewindmq.pipeline.index.queue_pieces import TIME, UNIT
from rewindmq.pipeline.snapshot import PositionedFile, positioned_files

Units = npt.NDArray[np.void]
Times = npt.NDArray[Any]

# So many places of a kind are told of; all are counted.
GAPS_SHOWN: Final = 20
QUEUE_FOLDER: Final = "consumequeue"


class Gap(NamedTuple):
    """A place where the queue offsets of a queue's records do not follow one another.

    Attributes:
        found: queue offset that the record states.
        unit: number of the unit it got, as a broker gives it when it builds the queue from the log.
    """

    topic: str
    queue_id: int
    unit: int
    found: int
    physical_offset: int


class QueueWriter:
    """Writes one queue. Needs memory for the units and times of one file.

    Attributes:
        gap_count: places where units were renumbered, as a broker does.
        gaps: the first of them.
        repeated: records passed over since the queue holds a unit of their queue offset.
        units: units written, without those in front of the first message.
        files_linked: of the earlier run.
        bytes_written: with what was copied of the file gone on with.
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
            target: folder that gets ``consumequeue/`` and ``timeindex/``.
            file_bytes: size of a consume queue file, whole units.
            previous: folder as ``target``, of an earlier run: its files are linked, the last gone on with.
            log_begin: files of which every record lies below it are left out.
        """
        assert file_bytes % UNIT.itemsize == 0
        self._files = files
        self._target = target
        self._queue = f"{topic}/{queue_id}"
        self.topic = topic
        self.queue_id = queue_id
        self._file_units = file_bytes // UNIT.itemsize
        self._units = np.zeros(self._file_units, UNIT)
        self._times = np.zeros(self._file_units, TIME)
        # Index of the first unit of the file being filled, and how many of its units are there.
        self._file_index = 0
        self._filled = 0
        self._is_begun = False
        # By how much units' indexes are below the queue offsets of their records.
        self._shift = 0
        self.gap_count = 0
        self.gaps: list[Gap] = []
        self.repeated = 0
        self.units = 0
        self.files_linked = 0
        self.bytes_written = 0
        if previous is not None:
            self._go_on(previous, log_begin)

    @property
    def next_index(self) -> int:
        """Index that the next unit gets."""
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
        self._file_index = last.base // UNIT.itemsize
        found = np.frombuffer(self._files.read(last.path, 0, last.size), UNIT)
        self._filled = int(np.searchsorted(found["size"] <= 0, True))
        if self._filled == self._file_units:
            link_file(self._files, previous, self._target, self._queue, last)
            self.files_linked += 1
            self._file_index += self._file_units
            self._filled = 0
            return
        self._units[: self._filled] = found[: self._filled]
        path = f"{previous}/{TIME_FOLDER}/{self._queue}/{file_name(self._file_index * TIME.itemsize)}"
        times = np.frombuffer(self._files.read(path, 0, self._filled * TIME.itemsize), TIME)
        self._times[: self._filled] = times

    def add(self, offset: int, units: Units, times: Times) -> None:
        """Add a piece; pieces come in the order of the log.

        Args:
            offset: queue offset of the first unit.
            units: shape (n,), n at least 1.
            times: store timestamps, ms, shape (n,).
        """
        if not self._is_begun:
            self._start_at(offset)
        if offset == 0 < self.next_index:
            # A broker looks no further where a record says 0: queues of deleted topics start over.
            self._tell_gap(0, units)
            self._append(units[:1], times[:1])
            offset, units, times = 1, units[1:], times[1:]
        known = min(max(self.next_index - offset, 0), len(units))
        self.repeated += known
        units, times = units[known:], times[known:]
        if len(units):
            if offset + known > self.next_index:
                self._tell_gap(offset + known, units)
            self._append(units, times)

    def _tell_gap(self, found: int, units: Units) -> None:
        if found - self.next_index == self._shift:
            return
        self._shift = found - self.next_index
        self.gap_count += 1
        position = int(units["position"][0])
        if len(self.gaps) < GAPS_SHOWN:
            self.gaps.append(Gap(self.topic, self.queue_id, self.next_index, found, position))

    def _start_at(self, offset: int) -> None:
        self._is_begun = True
        self._filled = offset % self._file_units
        self._file_index = offset - self._filled
        self._units["size"][: self._filled] = FILLER_SIZE

    def _append(self, units: Units, times: Times) -> None:
        self.units += len(units)
        while len(units):
            if self._filled == self._file_units:
                self._write()
                self._file_index += self._file_units
                self._filled = 0
                self._units[:] = 0
                self._times[:] = 0
            count = min(len(units), self._file_units - self._filled)
            place = slice(self._filled, self._filled + count)
            self._units[place], self._times[place] = units[:count], times[:count]
            self._filled += count
            units, times = units[count:], times[count:]

    def close(self) -> None:
        """Write the last file."""
        if self._filled:
            self._write()

    def _write(self) -> None:
        path = f"{self._target}/{QUEUE_FOLDER}/{self._queue}/{file_name(self._file_index * UNIT.itemsize)}"
        mtime_ms = int(self._times[self._filled - 1]) if self._filled else 0
        self._write_file(
            path, self._units[: self._filled].tobytes(), self._file_units * UNIT.itemsize, mtime_ms
        )
        path = f"{self._target}/{TIME_FOLDER}/{self._queue}/{file_name(self._file_index * TIME.itemsize)}"
        data = self._times[: self._filled].tobytes()
        self._write_file(path, data, self._file_units * TIME.itemsize, mtime_ms)

    def _write_file(self, path: str, data: bytes, size: int, mtime_ms: int) -> None:
        with self._files.create(path) as file:
            file.write(data)
            self._files.fill(file, size - len(data))
        self._files.sync(path)
        self._files.set_mtime(path, mtime_ms)
        self.bytes_written += len(data)


def kept_files(files: Files, folder: str, log_begin: int) -> list[PositionedFile]:
    """The files of a queue, without those at its front of which every record lies below ``log_begin``.

    The last one always stays (docs/spec/store.md 11.2).
    """
    found = positioned_files(files, folder)
    first = 0
    while first < len(found) - 1:
        last_unit = files.read(found[first].path, found[first].size - UNIT.itemsize, UNIT.itemsize)
        if np.frombuffer(last_unit, UNIT)["position"][0] >= log_begin:
            break
        first += 1
    return found[first:]


def link_file(files: Files, previous: str, target: str, queue: str, file: PositionedFile) -> None:
    """Let a file of ``previous`` be one of ``target``, with its part of the time index if there is one."""
    times = f"{TIME_FOLDER}/{queue}/{file_name(file.base // UNIT.itemsize * TIME.itemsize)}"
    files.link(file.path, f"{target}/{QUEUE_FOLDER}/{queue}/{file.path.rpartition('/')[2]}")
    if files.entry(f"{previous}/{times}") is not None:
        files.link(f"{previous}/{times}", f"{target}/{times}")
