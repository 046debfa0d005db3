"""Reads the records of a segment, or of a part of it, as blocks, and reports damage.

A worker reads a part without knowing its neighbours: the part holds the records that begin in it. The worker
that reads the last record before a hole reports the hole.

The time is linear in the part's size whatever its bytes are: a place is checked with a few short reads before
its record is read, and reads are short after damage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np

from rewindmq.pipeline.decode.damage import Damage, DamageKind
from rewindmq.pipeline.decode.record_block import RecordBlock, is_blank_at, walk
from rewindmq.pipeline.files import ReadableFiles
from rewindmq.protocol.message.record import (
    BLANK_BYTES,
    MAGIC_V1,
    MAGIC_V2,
    OVERHEAD_V4,
    PHYSICAL_OFFSET_AT,
)

CHUNK_BYTES: Final = 8 << 20
# More than the largest record: by default a body of 4 MiB and up to 64 KiB of other fields.
_LARGEST_RECORD: Final = 64 << 20
_PROBE_BYTES: Final = 4 << 10
# Bytes read beyond the end of a part; its last record usually ends there.
_TAIL_BYTES: Final = 4 << 10
# Enough for most records; a larger record needs a second read.
_RECORD_BYTES: Final = 1 << 10
# Lengths of two bytes are signed numbers.
_SHORT_LIMIT: Final = 1 << 15
_MAGICS: Final = (MAGIC_V1.to_bytes(4, "big"), MAGIC_V2.to_bytes(4, "big"))


class Segment(NamedTuple):
    """One file of a commit log.

    Attributes:
        base: log position of the file's first byte.
        size: bytes of the file.
        end: log position after the last record that readers may see; ``base + size`` for all but the last
            segment.
    """

    path: str
    base: int
    size: int
    end: int


class SegmentReader:
    """Reads one segment; calls ``tell`` with every damaged place."""

    def __init__(
        self,
        files: ReadableFiles,
        segment: Segment,
        tell: Callable[[Damage], None],
        chunk_bytes: int = CHUNK_BYTES,
    ) -> None:
        self._files = files
        self._segment = segment
        self._tell = tell
        self._chunk_bytes = chunk_bytes

    def blocks(self, start: int, stop: int) -> Iterator[RecordBlock]:
        """Yield blocks of the records that begin in [start, stop), log positions within the segment."""
        segment = self._segment
        stop = min(stop, segment.end)
        position: int | None = start
        if start != segment.base and not self.is_record(start):
            position = self.next_record(start, stop)
        size = self._chunk_bytes
        while position is not None and position < stop:
            block, behind, is_cut = self._read(position, stop, size)
            if len(block):
                yield block
            # Damage may follow damage: a long read for each place would read the same bytes again and again.
            size = min(2 * size, self._chunk_bytes) if is_cut else _PROBE_BYTES
            position = behind if is_cut else self._after(behind, stop)

    def _read(self, position: int, stop: int, size: int) -> tuple[RecordBlock, int, bool]:
        """Return the records from ``position`` on, the position after them, and whether ``size`` cut them.

        Reads more than ``size`` bytes if they do not hold the first record.
        """
        segment = self._segment
        size = min(size, stop - position + _TAIL_BYTES)
        while True:
            data = self._files.read(segment.path, position - segment.base, min(size, segment.end - position))
            starts, walked = walk(data, 0, stop - position)
            block = RecordBlock(data, position, np.asarray(starts, np.int64))
            intact = block.intact
            if not intact.all():
                block = block.select(np.arange(int(np.argmin(intact)), dtype=np.int64))
                return block, position + self._walked(block), False
            is_cut = position + walked < stop and self._is_cut_short(data, walked, position)
            if starts or not is_cut:
                return block, position + walked, is_cut
            if not self.is_record(position):
                return block, position, False
            size = max(2 * size, int.from_bytes(data[:4], "big"))

    @staticmethod
    def _walked(block: RecordBlock) -> int:
        return int(block.end[-1]) if len(block) else 0

    def _is_cut_short(self, data: bytes, at: int, position: int) -> bool:
        """Whether the record at ``at`` continues beyond ``data``, which ends before the part does."""
        if position + len(data) >= self._segment.end:
            return False
        rest = len(data) - at
        if rest < OVERHEAD_V4:
            return True
        size = int.from_bytes(data[at : at + 4], "big", signed=True)
        return data[at + 4 : at + 8] in _MAGICS and rest < size <= _LARGEST_RECORD

    def _after(self, position: int, stop: int) -> int | None:
        """Return where to continue after the last intact record; None if nothing follows in this part."""
        segment = self._segment
        if position >= segment.end:
            return None
        if self.is_record(position):
            return None
        head = self._files.read(segment.path, position - segment.base, BLANK_BYTES)
        is_blank = is_blank_at(head, 0)
        if is_blank and int.from_bytes(head[:4], "big") == segment.base + segment.size - position:
            return None
        found = self.next_record(position, segment.end)
        if is_blank and found is None:
            return None
        end = segment.end if found is None else found
        detail = f"{end - position} bytes contain no intact record"
        self._tell(Damage(DamageKind.HOLE, segment.base, position, end, detail))
        return found if found is not None and found < stop else None

    def is_record(self, position: int) -> bool:
        """Whether an intact record begins at this log position; its CRC is not checked.

        Reads no body, so that the cost does not depend on the size that the bytes state.
        """
        head = self._read_at(position, _RECORD_BYTES)
        starts, _ = walk(head, 0, 1)
        if starts:
            return bool(RecordBlock(head, position, np.zeros(1, np.int64)).intact[0])
        size = int.from_bytes(head[:4], "big", signed=True)
        if len(head) < _RECORD_BYTES or head[4:8] not in _MAGICS:
            return False
        largest = min(self._segment.end - position, _LARGEST_RECORD)
        return _RECORD_BYTES < size <= largest and self._ends_at(position, head)

    def _ends_at(self, position: int, head: bytes) -> bool:
        """Whether the lengths of a record that is longer than ``head`` add up to its size."""
        block = RecordBlock(head, position, np.zeros(1, np.int64))
        size, body = int(block.end[0]), int(block.tail["body_length"][0])
        if block.head["physical_offset"][0] != position or body < 0:
            return False
        topic_at = int(block.topic_at[0])
        width = topic_at - int(block.body_end[0])
        if topic_at + 2 > size:
            return False
        topic_bytes = int.from_bytes(self._read_at(position + topic_at - width, width), "big")
        properties_at = topic_at + topic_bytes + 2
        if topic_bytes >= _SHORT_LIMIT or properties_at > size:
            return False
        properties_bytes = int.from_bytes(self._read_at(position + properties_at - 2, 2), "big")
        return properties_bytes < _SHORT_LIMIT and properties_at + properties_bytes == size

    def _read_at(self, position: int, length: int) -> bytes:
        """Return at most ``length`` bytes at a log position, up to the segment's end."""
        segment = self._segment
        return self._files.read(segment.path, position - segment.base, min(length, segment.end - position))

    def record_at(self, position: int) -> RecordBlock | None:
        """Return the intact record that begins at this log position; None if there is none."""
        block, _, _ = self._read(position, position + 1, _RECORD_BYTES)
        return block if len(block) else None

    def run_from(self, position: int) -> tuple[RecordBlock | None, int]:
        """Walk intact records from ``position`` on.

        Returns:
            A block with the last of the records, and the position after it.
        """
        segment = self._segment
        newest, is_cut, size = None, True, _PROBE_BYTES
        while is_cut and position < segment.end:
            size = min(2 * size, self._chunk_bytes)
            block, position, is_cut = self._read(position, segment.end, size)
            newest = block if len(block) else newest
        return newest, position

    def next_record(self, start: int, stop: int) -> int | None:
        """Return the position of the first intact record that begins in [start, stop); None if there is none.

        A record is recognised by its magic, its own log position and its lengths. Bytes within a body do not
        match all of these by chance (docs/spec/store.md 13.2).
        """
        segment = self._segment
        position = start
        step = _PROBE_BYTES
        while position < stop:
            data = self._files.read(segment.path, position - segment.base, min(step, segment.end - position))
            for at in _magic_places(data):
                if position + at >= stop:
                    return None
                if _states_position(data, at, position + at) and self.is_record(position + at):
                    return position + at
            if position + len(data) >= segment.end:
                return None
            # The magic is four bytes after the start of the record.
            position += len(data) - 7
            step = min(2 * step, max(self._chunk_bytes, _PROBE_BYTES))
        return None


def _magic_places(data: bytes) -> list[int]:
    """Return the possible starts of records in ``data``, in order."""
    places = []
    for magic in _MAGICS:
        at = data.find(magic, 4)
        while at >= 0:
            places.append(at - 4)
            at = data.find(magic, at + 1)
    return sorted(places)


def _states_position(data: bytes, at: int, position: int) -> bool:
    """Whether the bytes at ``at`` state this log position as a record's; True if ``data`` does not tell."""
    stated = data[at + PHYSICAL_OFFSET_AT : at + PHYSICAL_OFFSET_AT + 8]
    return len(stated) < 8 or int.from_bytes(stated, "big") == position
