"""Time that a store and a broker need to open a commit log after a crash."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from rewindmq.broker.store import BatchEntry, MessageStore, StoreConfig, StoredMessage

GIB = 1 << 30
_QUEUES = 4
_BATCH = 64
_SEGMENT_BYTES = 1 << 28


def _config() -> StoreConfig:
    return StoreConfig(mapped_file_size_commit_log=_SEGMENT_BYTES)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _fill(root: Path, size: int, body_bytes: int, tail: int) -> None:
    """Fill a log and end without closing it, as a killed broker; ``tail`` messages follow the checkpoint."""
    store = MessageStore(root, _config(), _now_ms)
    store.open()
    batch = [BatchEntry(bytes(body_bytes), b"KEYS\x01order-4711\x02TAGS\x01blue", 0, 0)] * _BATCH
    number = 0
    while store.max_commit_log_offset < size:
        store.put_batch(StoredMessage("T", number % _QUEUES, b""), batch)
        number += 1
    if tail:
        store.flush_all()
    for _ in range(0, tail, _BATCH):
        store.put_batch(StoredMessage("T", number % _QUEUES, b""), batch)


@contextlib.contextmanager
def killed_store(size: int, body_bytes: int, tail: int = 0) -> Iterator[Path]:
    """Make the store of a killed broker.

    Args:
        size: bytes of commit log.
        tail: messages behind the checkpoint; 0 means that there is no checkpoint.
    """
    with tempfile.TemporaryDirectory(prefix="rewindmq-bench-") as folder:
        root = Path(folder) / "store"
        child = os.fork()
        if not child:
            try:
                _fill(root, size, body_bytes, tail)
                os._exit(0)
            except BaseException:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        if status:
            raise SystemExit("bench: the store cannot be filled")
        yield root


def open_seconds(root: Path) -> tuple[float, int]:
    """Open a killed store; return the processor time in seconds, and the bytes of its log.

    The page cache is warm, so other work on the machine does not change the figure much. The store stays as
    if killed.
    """
    store = MessageStore(root, _config(), _now_ms)
    started = time.process_time()
    store.open()
    seconds = time.process_time() - started
    size = store.max_commit_log_offset
    store.close()
    (root / "abort").touch()
    return seconds, size


def serve_seconds(root: Path) -> float:
    """Start a broker over a killed store; return the seconds from the command to its ready line."""
    conf = root.parent / "broker.conf"
    conf.write_text(f"storePathRootDir={root}\nmappedFileSizeCommitLog={_SEGMENT_BYTES}\n")
    command = [sys.executable, "-m", "rewindmq", "broker", "-c", str(conf), "-p", "0"]
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as broker:
        assert broker.stdout is not None
        json.loads(broker.stdout.readline())
        seconds = time.perf_counter() - started
        broker.send_signal(signal.SIGKILL)
    return seconds
