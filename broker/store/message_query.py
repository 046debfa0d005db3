"""Reading messages by key: the index tells where they are, the log what they are (docs/spec/store.md 5.5)."""

from __future__ import annotations

from typing import Final

from rewindmq.broker.store.commit_log import CommitLog
from rewindmq.broker.store.index_service import IndexService
from rewindmq.broker.store.model import QueryResult
from rewindmq.protocol.limits import MAX_FRAME_BYTES, MAX_HEADER_BYTES

# DefaultMessageStore#queryMessage goes back this often while it finds no message that is still there.
_ROUNDS: Final = 3
# What one answer can carry.
_MAX_BYTES: Final = MAX_FRAME_BYTES - MAX_HEADER_BYTES


def query_message(
    index: IndexService, log: CommitLog, topic: str, key: str, max_count: int, begin: int, end: int
) -> QueryResult:
    """DefaultMessageStore#queryMessage of 4.9.4, as far as the index has come.

    Each record once, by log position; those beyond what a frame can carry are left out, the newest first.
    """
    hits = index.query(topic, key, max_count, begin, end)
    newest = hits
    for _ in range(_ROUNDS):
        positions = sorted(set(hits.physical_offsets))
        records: list[bytes] = []
        total = 0
        for position in positions:
            record = log.record_at(position)
            data = None if record is None else log.read(position, record.size)
            if data is None:
                continue
            total += len(data)
            if total > _MAX_BYTES:
                break
            records.append(data)
        if records or not positions:
            break
        oldest = log.store_time(positions[0])
        if oldest < begin:
            break
        hits = index.query(topic, key, max_count, begin, oldest)
    return QueryResult(
        b"".join(records), len(records), newest.last_update_timestamp, newest.last_update_phy_offset
    )
