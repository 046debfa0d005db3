"""Finds the part of a log that was stored in a range of time, by reading a few records."""

from __future__ import annotations

from typing import Final

from rewindmq.pipeline.decode.damage import Damage
from rewindmq.pipeline.decode.segment_reader import SegmentReader
from rewindmq.pipeline.selection import Range
from rewindmq.pipeline.snapshot.snapshot import StoreSnapshot

# The search by time stops at ranges of this size: so many bytes may be read in vain at each end.
_GRAIN_BYTES: Final = 64 << 10


def stored_within(snapshot: StoreSnapshot, times: Range, slack_ms: int) -> tuple[int, int]:
    """Return positions [start, stop) that include every message stored at these times.

    slack_ms: how far the clock may have gone back: a record's time is at most this much below the time of any
        earlier record.
            much below the earlier one's.
    """
    probe = _Probe(snapshot)
    start = _start(probe, times.low - slack_ms, snapshot.begin, snapshot.end)
    return start, _stop(probe, times.high + slack_ms, start, snapshot.end)


class _Probe:
    def __init__(self, snapshot: StoreSnapshot) -> None:
        self._segments = [
            (segment, SegmentReader(snapshot.files, segment, _ignore)) for segment in snapshot.segments
        ]

    def first(self, start: int, stop: int) -> tuple[int, int] | None:
        """Return position and store time of the first record that begins in [start, stop)."""
        for segment, reader in self._segments:
            if segment.end <= start or segment.base >= stop:
                continue
            found = reader.next_record(max(start, segment.base), min(stop, segment.end))
            block = None if found is None else reader.record_at(found)
            if block is not None:
                return block.base, int(block.store_timestamp[0])
        return None


def _ignore(_damage: Damage) -> None:
    pass


def _start(probe: _Probe, time: int, low: int, high: int) -> int:
    """Return a position before which every record is older than ``time``, in a log sorted by time."""
    while high - low > _GRAIN_BYTES:
        middle = (low + high) // 2
        found = probe.first(middle, high)
        if found is None or found[1] >= time:
            high = middle
        else:
            low = found[0]
    return low


def _stop(probe: _Probe, time: int, low: int, high: int) -> int:
    """Return a position from which on every record is newer than ``time``, in a log sorted by time."""
    while high - low > _GRAIN_BYTES:
        middle = (low + high) // 2
        found = probe.first(middle, high)
        if found is None or found[1] > time:
            high = middle
        else:
            low = max(found[0], middle)
    return high
