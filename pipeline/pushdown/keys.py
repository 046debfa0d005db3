"""The parts of a log that hold messages with some keys, by key index files."""

from __future__ import annotations

from collections.abc import Iterable

from rewindmq.pipeline.decode.damage import Damage
from rewindmq.pipeline.decode.segment_reader import SegmentReader
from rewindmq.pipeline.index_files.reader import IndexReader
from rewindmq.pipeline.pushdown.ranges import Ranges, outside, union
from rewindmq.pipeline.snapshot.snapshot import StoreSnapshot


def of_keys(
    snapshot: StoreSnapshot, indexes: Iterable[IndexReader], topics: Iterable[str], keys: Iterable[str]
) -> Ranges:
    """Parts of the log outside of which begins no message of these topics that has one of the keys.

    What no index file covers is among them.
    """
    pairs = [(topic, key) for topic in topics for key in keys]
    covered: Ranges = []
    found: Ranges = []
    for index in indexes:
        if not _belongs(snapshot, index):
            continue
        positions = [index.positions(topic, key) for topic, key in pairs]
        if any(hits is None for hits in positions):
            continue
        # Of the last message some keys may still be missing, as of the first.
        covered.append((index.header.begin_phy_offset + 1, index.header.end_phy_offset))
        found += [(position, position + 1) for hits in positions if hits is not None for position in hits]
    return union(found + outside(union(covered), snapshot.begin, snapshot.end))


def _belongs(snapshot: StoreSnapshot, index: IndexReader) -> bool:
    """Whether the file was made from this log: the message that its header ends with is there."""
    position = index.header.end_phy_offset
    segment = snapshot.segment_of(position)
    if segment is None:
        return False
    record = SegmentReader(snapshot.files, segment, _ignore).record_at(position)
    return record is not None and int(record.store_timestamp[0]) == index.header.end_timestamp


def _ignore(_damage: Damage) -> None:
    pass
