"""Search by time in one queue of ten million entries, called at the store without a broker."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rewindmq.broker.store.config import StoreConfig
from rewindmq.broker.store.model import BatchEntry, Boundary, SearchMode, StoredMessage
from rewindmq.broker.store.store import MessageStore

_TOPIC = "T"
_BATCH = 1000
_START_MS = 1_700_000_000_000
_STORE_HOST = bytes((127, 0, 0, 1, 0, 0, 0x2A, 0x9F))


@contextmanager
def filled_store(entries: int) -> Iterator[MessageStore]:
    """Make a store with one queue of ``entries`` one-byte messages, a thousand in each millisecond."""
    now = _START_MS
    with tempfile.TemporaryDirectory(prefix="rewindmq-bench-") as directory:
        path = Path(directory) / "store"
        store = MessageStore(path, StoreConfig(), lambda: now, store_host=_STORE_HOST)
        store.open()
        try:
            message = StoredMessage(_TOPIC, 0, b"", b"", 0, 0, 0, _START_MS, _STORE_HOST, 0)
            batch = [BatchEntry(b"x", b"", 0, 0)] * _BATCH
            for _ in range(entries // _BATCH):
                store.put_batch(message, batch)
                now += 1
            yield store
        finally:
            store.close()


def search_microseconds(store: MessageStore, mode: SearchMode, searches: int, seed: int) -> float:
    """Return the mean microseconds of a search for uniformly drawn timestamps."""
    chance = random.Random(seed)
    span = store.max_offset(_TOPIC, 0) // _BATCH
    timestamps = [_START_MS + chance.randrange(span) for _ in range(searches)]
    search = store.search_offset
    started = time.perf_counter()
    for timestamp in timestamps:
        search(_TOPIC, 0, timestamp, Boundary.LOWER, mode)
    return (time.perf_counter() - started) / searches * 1e6
