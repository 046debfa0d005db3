"""Time to take and to restore a snapshot of a cluster with one broker."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.cluster_start import cpu_seconds
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
        files_cpu: processor time of the snapshot and the files.
        restart_cpu: processor time of the restart, of this process and of those that it starts.
    """

    take: float
    put_back: float
    restart: float
    files_cpu: float
    restart_cpu: float


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
    began, cpu = time.perf_counter(), _cpu(cluster)
    cluster.snapshot(_NAME)
    take, take_cpu = time.perf_counter() - began, _cpu(cluster) - cpu
    snapshots = Snapshots(cluster.directory / "snapshots")
    scratch = cluster.directory / "scratch"
    header = snapshots.header(_NAME)
    began, own = time.perf_counter(), time.process_time()
    snapshots.put_back(_NAME, scratch, header)
    put_back, put_back_cpu = time.perf_counter() - began, time.process_time() - own
    shutil.rmtree(scratch)
    began, own = time.perf_counter(), time.process_time()
    cluster.restore(_NAME)
    restart = time.perf_counter() - began - put_back
    # The processes are new ones, so all of their time is that of the restart.
    restart_cpu = time.process_time() - own - put_back_cpu + _servers_cpu(cluster)
    return Seconds(take, put_back, restart, take_cpu + put_back_cpu, restart_cpu)


def _cpu(cluster: LocalCluster) -> float:
    return time.process_time() + _servers_cpu(cluster)


def _servers_cpu(cluster: LocalCluster) -> float:
    return sum(cpu_seconds(process.pid) for process in (cluster.namesrv, *cluster.brokers.values()))
