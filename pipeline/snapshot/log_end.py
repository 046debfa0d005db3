"""Finds the end of a commit log: after its last intact record, before allocated or half-written bytes."""

from __future__ import annotations

from typing import Final

from rewindmq.pipeline.decode.damage import Damage, DamageKind
from rewindmq.pipeline.decode.record_block import is_blank_at
from rewindmq.pipeline.decode.segment_reader import Segment, SegmentReader
from rewindmq.pipeline.files import ReadableFiles
from rewindmq.protocol.message.record import BLANK_BYTES

# This many zero bytes mean that no record follows: more than a record of the default maximum size.
_EMPTY_BYTES: Final = 8 << 20
# Of these zero bytes, all of the first are checked; of the others, samples.
_NEAR_BYTES: Final = 256 << 10
# The search for the log's end uses steps of this size, and probes a few bytes in each step first.
_GRAIN_BYTES: Final = 64 << 10
_GLANCE_BYTES: Final = 4 << 10
_LAST: Final = slice(-1, None)


def cut_behind_last_record(files: ReadableFiles, whole: list[Segment]) -> tuple[list[Segment], Damage | None]:
    """Drop segments that have no record yet, and end the last segment after its last intact record."""
    for number in range(len(whole) - 1, -1, -1):
        segment = whole[number]
        reader = SegmentReader(files, segment, _ignore)
        if (
            number
            and reader.next_record(segment.base, segment.base + 1) is None
            and _is_empty(files, segment, segment.base)
        ):
            continue
        end, torn = _end_of(files, segment, _late_record(files, segment, reader))
        return [*whole[:number], segment._replace(end=end)], torn
    return [], None


def _ignore(_damage: Damage) -> None:
    pass


def _is_empty(files: ReadableFiles, segment: Segment, position: int) -> bool:
    """Whether only zeros follow ``position``; checks all of the first bytes, then samples of the rest."""
    begin = position
    while position < min(begin + _EMPTY_BYTES, segment.base + segment.size):
        data = files.data_range(segment.path, position - segment.base)
        if data is None:
            return True
        position = max(position, segment.base + data[0])
        is_near = position < begin + _NEAR_BYTES
        length = min(segment.base + data[1] - position, _NEAR_BYTES if is_near else _GLANCE_BYTES)
        if any(files.read(segment.path, position - segment.base, length)):
            return False
        position += length if is_near else _GRAIN_BYTES
    return True


def _late_record(files: ReadableFiles, segment: Segment, reader: SegmentReader) -> int:
    """Return the position of a record near the segment's end, found without reading what is before it.

    The segment's base if the search finds none. The caller walks all records after the result, so that a hole
    in the log only makes the search less exact.
    """
    low, high = segment.base, segment.base + segment.size
    while high - low > _GRAIN_BYTES:
        middle = (low + high) // 2
        found = None
        if any(files.read(segment.path, middle - segment.base, _GLANCE_BYTES)):
            found = reader.next_record(middle, min(middle + _GRAIN_BYTES, high))
        if found is None:
            high = middle
        else:
            low = found
    return low


def _end_of(files: ReadableFiles, segment: Segment, start: int) -> tuple[int, Damage | None]:
    """Return the end of the log's last segment, and the damage after it, if any."""
    limit = segment.base + segment.size
    reader = SegmentReader(files, segment, _ignore)
    newest, end = reader.run_from(start)
    is_empty = False
    while end < limit and not is_empty:
        if is_blank_at(files.read(segment.path, end - segment.base, BLANK_BYTES), 0):
            return limit, None
        is_empty = _is_empty(files, segment, end)
        later = None if is_empty else _record_behind(files, segment, reader, end)
        if later is None:
            break
        newest, end = reader.run_from(later)
    if newest is not None and not newest.select(_LAST).crc_ok[0]:
        begin = newest.base + int(newest.at[-1])
        detail = "the body of the last record does not match its CRC"
        return begin, Damage(DamageKind.TORN_TAIL, segment.base, begin, end, detail)
    if end < limit and not is_empty:
        detail = "an incomplete record follows the last record"
        return end, Damage(DamageKind.TORN_TAIL, segment.base, end, limit, detail)
    return end, None


def _record_behind(
    files: ReadableFiles, segment: Segment, reader: SegmentReader, position: int
) -> int | None:
    """Return the next record after a position without a record; None if only zeros follow."""
    limit = segment.base + segment.size
    while position < limit:
        behind = min(position + _EMPTY_BYTES, limit)
        found = reader.next_record(position, behind)
        if found is not None or _is_empty(files, segment, behind):
            return found
        position = behind
    return None
