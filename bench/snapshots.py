"""Time to take and to restore a snapshot of a cluster with one broker."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rewindmq import LocalCluster
from rewindmq.broker.store import BatchEntry, MessageStore, StoreConfig, StoredMessage
from rewindmq.cluster.snapshots.snapshots import Snapshots

GIB = 1 << 30
_BODY_BYTES = 1_024
_BATCH = 64
_QUEUES = 4
_NAME = "backlog"


@dataclass(frozen=True)
class Seconds:
    """Seconds of one round.

    Attributes:
        take: the snapshot.
        put_back: linking and copying its files for a restore.
        restart: the rest of the restore: the kill, and the start of name server and broker.
    """

    take: float
    put_back: float
    restart: float


@contextlib.contextmanager
def filled_cluster(size: int, segment_bytes: int) -> Iterator[LocalCluster]:
    """Run a cluster of one broker whose log has ``size`` bytes."""
    with tempfile.TemporaryDirectory(prefix="rewindmq-bench-") as name:
        directory = Path(name)
        _fill(directory / "broker-a" / "store", size, segment_bytes)
        config = {"mappedFileSizeCommitLog": segment_bytes}
        with LocalCluster(1, directory=directory, broker_config=config, start_seconds=120.0) as cluster:
            yield cluster


def _fill(root: Path, size: int, segment_bytes: int) -> None:
    config = StoreConfig(mapped_file_size_commit_log=segment_bytes)
    store = MessageStore(root, config, lambda: time.time_ns() // 1_000_000)
    store.open()
    batch = [BatchEntry(bytes(_BODY_BYTES), b"TAGS\x01blue", 0, 0)] * _BATCH
    number = 0
    while store.max_commit_log_offset < size:
        store.put_batch(StoredMessage("SnapshotTopic", number % _QUEUES, b""), batch)
        number += 1
    store.close()


def measure(cluster: LocalCluster) -> Seconds:
    """Take a snapshot and restore it."""
    began = time.perf_counter()
    cluster.snapshot(_NAME)
    taken = time.perf_counter()
    snapshots = Snapshots(cluster.directory / "snapshots")
    scratch = cluster.directory / "scratch"
    header = snapshots.header(_NAME)
    linking = time.perf_counter()
    snapshots.put_back(_NAME, scratch, header)
    put_back = time.perf_counter() - linking
    shutil.rmtree(scratch)
    restoring = time.perf_counter()
    cluster.restore(_NAME)
    return Seconds(taken - began, put_back, time.perf_counter() - restoring - put_back)
