"""Reading messages by key: the index gives positions, the log the content (docs/spec/store.md 5.5)."""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from rewindmq.broker.store.index.service import IndexService
from rewindmq.broker.store.log.commit_log import CommitLog
from rewindmq.broker.store.model import QueryResult
from rewindmq.protocol.limits import MAX_RESPONSE_BODY_BYTES

# DefaultMessageStore#queryMessage repeats this often, further back, while it finds no existing message.
_ROUNDS: Final = 3


def query_message(
    index: IndexService, log: CommitLog, topic: str, key: str, max_count: int, begin: int, end: int
) -> Generator[None, None, QueryResult]:
    """Return the indexed messages under a key (DefaultMessageStore#queryMessage of 4.9.4).

    Yields after some ms of work.

    Records are unique and ordered by log position. If a frame cannot carry all, the newest are left out.
    """
    hits = yield from index.query(topic, key, max_count, begin, end)
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
            if total > MAX_RESPONSE_BODY_BYTES:
                break
            records.append(data)
        if records or not positions:
            break
        oldest = log.store_time(positions[0])
        if oldest < begin:
            break
        hits = yield from index.query(topic, key, max_count, begin, oldest)
    return QueryResult(
        b"".join(records), len(records), newest.last_update_timestamp, newest.last_update_phy_offset
    )
