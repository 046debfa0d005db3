"""What a put costs a store that writes to many queues in turn; the file of each queue is mapped."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from rewindmq.broker.store import MessageStore, PutStatus, StoreConfig, StoredMessage

_BODY = b"x" * 100
_PASSES = 9


def put_microseconds(queues: int, puts: int) -> float:
    """Microseconds of one put when so many queues of one topic take turns; the best of some passes.

    Args:
        puts: of one pass; at least one to each queue.
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
