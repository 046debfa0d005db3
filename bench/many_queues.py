"""Time of a put in a store that writes to many queues in turn; the file of each queue is mapped."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from rewindmq.broker.store import MessageStore, PutStatus, StoreConfig, StoredMessage

_BODY = b"x" * 100
_PASSES = 9


def put_microseconds(queues: int, puts: int) -> float:
    """Return the microseconds of one put when ``queues`` queues take turns, in the best of nine passes.

    Args:
        puts: number of puts in a pass; each queue gets at least one.
    """
    with tempfile.TemporaryDirectory() as folder:
        store = MessageStore(Path(folder), StoreConfig(), lambda: time.time_ns() // 1_000_000)
        store.open()
        try:
            return min(_one_pass(store, queues, max(queues, puts)) for _ in range(_PASSES))
        finally:
            store.close()


def _one_pass(store: MessageStore, queues: int, puts: int) -> float:
    messages = [StoredMessage("T", number % queues, _BODY) for number in range(puts)]
    put = store.put_message
    start = time.perf_counter()
    for message in messages:
        result = put(message)
    seconds = time.perf_counter() - start
    assert result.status is PutStatus.PUT_OK
    return seconds / puts * 1e6
