"""Checks that a log is the one that an output was made from."""

from __future__ import annotations

from typing import Any, NamedTuple
from zlib import crc32

from rewindmq.pipeline.decode.damage import Damage
from rewindmq.pipeline.decode.record_block import is_blank_at
from rewindmq.pipeline.decode.segment_reader import SegmentReader
from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.snapshot.snapshot import StoreSnapshot
from rewindmq.protocol.message.record import BLANK_BYTES


class RecordIdentity(NamedTuple):
    """Identifies a record: its position, its store timestamp in ms, and the CRC-32 of all its bytes."""

    position: int
    size: int
    store_timestamp: int
    crc: int

    @property
    def end(self) -> int:
        """Log position after the record."""
        return self.position + self.size

    @staticmethod
    def from_json(value: Any) -> RecordIdentity | None:
        """Return the identity recorded in a manifest; None if it records none."""
        return None if value is None else RecordIdentity(*value)


def identify(snapshot: StoreSnapshot, position: int) -> RecordIdentity | None:
    """Return the identity of the record that begins at a log position; None if none begins there."""
    segment = snapshot.segment_of(position)
    if segment is None:
        return None
    reader = SegmentReader(snapshot.files, segment, _ignore)
    for block in reader.blocks(position, position + 1):
        begin, end = int(block.at[0]), int(block.end[0])
        if block.base + begin == position:
            data = memoryview(block.data)[begin:end]
            return RecordIdentity(position, end - begin, int(block.store_timestamp[0]), crc32(data))
    return None


def ends_a_record(snapshot: StoreSnapshot, position: int) -> bool:
    """Whether a position within the log is a border between records."""
    segment = snapshot.segment_of(position)
    if segment is None or position == segment.base:
        return True
    if is_blank_at(snapshot.files.read(segment.path, position - segment.base, BLANK_BYTES), 0):
        return True
    return identify(snapshot, position) is not None


def check_same_log(
    snapshot: StoreSnapshot, last: RecordIdentity, output: str, advice: str = "choose a new output"
) -> None:
    """Check that the log holds the last record that an output was made from.

    Args:
        advice: what the user should do if it does not.

    Raises:
        PipelineError: the log does not hold the record.
    """
    if snapshot.begin > last.position:
        raise PipelineError(
            f"{output} was made from the log of {snapshot.location} up to {last.end}, but that log now begins"
            f" at {snapshot.begin}: the part between was deleted; {advice}"
        )
    if identify(snapshot, last.position) != last:
        raise PipelineError(
            f"{output} was made from another log than {snapshot.location} has: the record at {last.position}"
            f" differs or is missing; {advice}"
        )


def _ignore(_damage: Damage) -> None:
    pass
