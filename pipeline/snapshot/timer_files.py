"""The timer files of a store: which messages of the timer queue wait (docs/spec/timers.md 4).

They are read as a broker that starts would use them. ``broker/store/timer/index.py``, which the broker uses,
also repairs them; this module changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from rewindmq.broker.store.layout.timer import (
    BLANK,
    CHECKPOINT_FILE,
    LOG_FOLDER,
    MAGIC_DELETE,
    MAGIC_MASK,
    NO_UNIT,
    SLOT_BYTES,
    UNIT_BYTES,
    WHEEL_FILE,
)
from rewindmq.broker.store.timer.checkpoint import TimerProgress, decode_checkpoint
from rewindmq.pipeline.decode.record_block import HEAD, Bools, Int64s, Structs
from rewindmq.pipeline.files import ReadableFiles
from rewindmq.pipeline.snapshot.snapshot import PositionedFile, StoreSnapshot, positioned_files

# ``layout.timer.SLOT`` and ``layout.timer.UNIT`` as numpy types.
_SLOT: Final = np.dtype(
    [("number", ">i8"), ("first", ">i8"), ("last", ">i8"), ("count", ">i4"), ("magic", ">i4")]
)
_UNIT: Final = np.dtype(
    [
        ("size", ">i4"),
        ("previous", ">i8"),
        ("magic", ">i4"),
        ("write_ms", ">i8"),
        ("left_ms", ">i4"),
        ("position", ">i8"),
        ("record_bytes", ">i4"),
        ("topic_hash", ">i4"),
        ("reserved", ">i8"),
    ]
)
# A broker rounds ``timerPrecisionMs`` to one of these.
_PRECISIONS_MS: Final = (1_000, 500, 200, 100)
_UNITS_AT_ONCE: Final = 100_000
_BYTES_AT_ONCE: Final = _UNITS_AT_ONCE * UNIT_BYTES
_SLOTS_AT_ONCE: Final = 100_000


class TimerUnits(NamedTuple):
    """The messages that wait in slots.

    Attributes:
        positions: of their records in the commit log, ascending.
        deletes: the positions of those that delete others, ascending.
        next_offset: offset in the timer queue of the first message that is in no slot yet.
    """

    positions: Int64s
    deletes: Int64s
    next_offset: int


class _Slots(NamedTuple):
    """The slots with messages, by time: their times, and the positions of their first and last units."""

    times: Int64s
    firsts: Int64s
    lasts: Int64s


class TimerFiles(NamedTuple):
    """Checkpoint and wheel as they were at one moment; it can be pickled.

    A snapshot of the log that is taken later has everything that was delivered up to that moment. So no
    message is missed while the broker runs; one that it delivers in between may be listed as waiting.

    Attributes:
        progress: of the checkpoint; zeros if there is none.
        is_sealed: the timer log counts up to the end in the checkpoint; otherwise as far as it has units.
        slots: None if a broker would read the timer queue again.
        root: path of the store.
    """

    progress: TimerProgress
    is_sealed: bool
    slots: _Slots | None
    root: str

    def is_delivered(self, queue_offset: Int64s, out_ms: Int64s) -> Bools:
        """Whether messages that are read again from the timer queue were delivered, as a broker decides."""
        progress = self.progress
        delivered: Bools = (queue_offset < progress.master_offset) & (out_ms < progress.read_ms)
        return delivered

    def units(self, snapshot: StoreSnapshot) -> TimerUnits:
        """Read the timer log.

        Raises:
            OSError: a file cannot be read.
        """
        progress = self.progress
        nothing = np.empty(0, np.int64)
        offset = min(progress.queue_offset, progress.master_offset)
        if self.slots is None:
            # Before the first message there are no files; otherwise, they are lost.
            return TimerUnits(nothing, nothing, 0 if progress.log_end else offset)
        positions, deletes, newest = [nothing], [nothing], -1
        start = max(min([progress.log_end - UNIT_BYTES, *self.slots.firsts.tolist()]), 0)
        log = positioned_files(snapshot.files, f"{self.root}/{LOG_FOLDER}")
        for at, units in _read_units(snapshot.files, log, start, progress.log_end, is_cut=self.is_sealed):
            kept = self._waiting(at, units)
            positions.append(units["position"][kept].astype(np.int64))
            deletes.append(units["position"][kept & (units["magic"] & MAGIC_DELETE != 0)].astype(np.int64))
            if at[-1] >= progress.log_end - UNIT_BYTES:
                newest = int(units["position"][-1])
        if not self.is_sealed and (last := _queue_offset(snapshot, newest)) is not None:
            offset = min(last + 1, progress.master_offset)
        return TimerUnits(np.unique(np.concatenate(positions)), np.unique(np.concatenate(deletes)), offset)

    def _waiting(self, at: Int64s, units: Structs) -> Bools:
        """Whether each unit is in the chain of its slot.

        A slot's chain has all units of its time from its first to its last unit.
        """
        slots = self.slots
        assert slots is not None
        times = units["write_ms"].astype(np.int64) + units["left_ms"]
        # A broker that starts puts units behind the checkpoint into their slots.
        later: Bools = (at >= self.progress.log_end) & (times >= self.progress.read_ms)
        if not len(slots.times):
            return later
        place = np.minimum(np.searchsorted(slots.times, times), len(slots.times) - 1)
        is_linked = (slots.times[place] == times) & (slots.firsts[place] <= at) & (at <= slots.lasts[place])
        waiting: Bools = later | is_linked
        return waiting


def read_timer_files(files: ReadableFiles, root: str) -> TimerFiles:
    """Read checkpoint and wheel of a store. To miss no message, call it before you take the snapshot.

    Raises:
        OSError: a file cannot be read.
        PipelineError: a file of the timer log is a pipe, a device, or a folder.
    """
    # The checkpoint is saved last: a wheel that is read after it is as new or newer.
    found, is_sealed = decode_checkpoint(files.read_all(f"{root}/config/{CHECKPOINT_FILE}") or b"")
    progress = found or TimerProgress()
    log = positioned_files(files, f"{root}/{LOG_FOLDER}")
    slots = _read_wheel(files, f"{root}/{WHEEL_FILE}", progress) if found else None
    if not log or not _is_whole(log) or not _has(log, progress.log_end):
        slots = None
    return TimerFiles(progress, is_sealed, slots, root)


def _is_whole(log: Sequence[PositionedFile]) -> bool:
    return all(after.base - before.base == before.size == after.size for before, after in pairwise(log))


def _has(log: Sequence[PositionedFile], position: int) -> bool:
    return log[0].base <= position <= log[-1].base + log[-1].size


def _read_wheel(files: ReadableFiles, path: str, progress: TimerProgress) -> _Slots | None:
    """Return the slots that are not delivered; None if there is no wheel."""
    entry = files.entry(path)
    if entry is None or not entry.is_file or not entry.size or entry.size % SLOT_BYTES:
        return None
    count = entry.size // SLOT_BYTES
    pieces = []
    at = 0
    while (found := files.data_range(path, at)) is not None:
        start, stop = found[0] // SLOT_BYTES, min(-(-found[1] // SLOT_BYTES), count)
        stop = min(stop, start + _SLOTS_AT_ONCE)
        data = files.read(path, start * SLOT_BYTES, (stop - start) * SLOT_BYTES)
        slots = np.frombuffer(data[: len(data) // SLOT_BYTES * SLOT_BYTES], _SLOT)
        numbers = slots["number"].astype(np.int64)
        is_used = (numbers > 0) & (slots["last"] != NO_UNIT)
        pieces.append(slots[is_used & (numbers % count == start + np.arange(len(slots)))])
        at = stop * SLOT_BYTES
        if stop >= count:
            break
    kept = np.concatenate(pieces) if pieces else np.empty(0, _SLOT)
    times = kept["number"].astype(np.int64) * _precision(kept["number"], progress)
    is_open = times >= progress.read_ms
    order = np.argsort(times[is_open])
    return _Slots(
        times[is_open][order],
        kept["first"][is_open][order].astype(np.int64),
        kept["last"][is_open][order].astype(np.int64),
    )


def _precision(numbers: Int64s, progress: TimerProgress) -> int:
    """Return the ms of a slot: with them, slots are near the time of the checkpoint."""
    near = max(progress.read_ms, progress.version_ms)
    if not len(numbers) or not near:
        return _PRECISIONS_MS[0]
    newest = int(numbers.max())
    return min(_PRECISIONS_MS, key=lambda step: abs(newest * step - near))


def _read_units(
    files: ReadableFiles, log: Sequence[PositionedFile], start: int, end: int, *, is_cut: bool
) -> Iterator[tuple[Int64s, Structs]]:
    """Yield units from a position on with their own positions, many at a time.

    Args:
        is_cut: end at ``end``; otherwise at the first place behind it without a unit.
    """
    for file in log:
        # Behind these a blank unit ends the file.
        stop = ((file.size - BLANK.size) // UNIT_BYTES) * UNIT_BYTES
        at = max(start - file.base, 0) // UNIT_BYTES * UNIT_BYTES
        while at < stop:
            data = files.read(file.path, at, min(_BYTES_AT_ONCE, stop - at))
            units = np.frombuffer(data[: len(data) // UNIT_BYTES * UNIT_BYTES], _UNIT)
            if not len(units):
                return
            places = file.base + at + np.arange(len(units), dtype=np.int64) * UNIT_BYTES
            magic = units["magic"]
            is_unit = (units["size"] == UNIT_BYTES) & (magic > 0) & (magic <= MAGIC_MASK)
            behind = np.flatnonzero((places >= end) & (is_cut | ~is_unit))
            if len(behind):
                is_unit[behind[0] :] = False
            if is_unit.any():
                yield places[is_unit], units[is_unit]
            if len(behind):
                return
            at += len(units) * UNIT_BYTES


def _queue_offset(snapshot: StoreSnapshot, position: int) -> int | None:
    """Return the queue offset that the record at a log position states; None if there is none."""
    segment = snapshot.segment_of(position)
    if segment is None:
        return None
    data = snapshot.files.read(segment.path, position - segment.base, HEAD.itemsize)
    if len(data) < HEAD.itemsize:
        return None
    head = np.frombuffer(data, HEAD)[0]
    return int(head["queue_offset"]) if head["physical_offset"] == position else None
