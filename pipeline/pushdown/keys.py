"""Finds the parts of a log with messages of some keys, through key index files."""

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
    """Return the parts of the log that may hold a message of these topics with one of these keys.

    Parts that no index file covers are included.
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
        # The file may lack some keys of its first and of its last message.
        covered.append((index.header.begin_phy_offset + 1, index.header.end_phy_offset))
        found += [(position, position + 1) for hits in positions if hits is not None for position in hits]
    return union(found + outside(union(covered), snapshot.begin, snapshot.end))


def _belongs(snapshot: StoreSnapshot, index: IndexReader) -> bool:
    """Whether the file was made from this log: the log has the message that the file's header ends with."""
    position = index.header.end_phy_offset
    segment = snapshot.segment_of(position)
    if segment is None:
        return False
    record = SegmentReader(snapshot.files, segment, _ignore).record_at(position)
    return record is not None and int(record.store_timestamp[0]) == index.header.end_timestamp


def _ignore(_damage: Damage) -> None:
    pass
