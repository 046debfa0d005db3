"""Start-up time and idle memory of a cluster of one name server and two brokers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_START_SECONDS = 30.0


@contextmanager
def running_cluster(brokers: int) -> Iterator[tuple[dict[str, Any], float]]:
    """Run ``rewindmq up`` as a user does; give its ready line and the seconds until that line."""
    with tempfile.TemporaryDirectory(prefix="rewindmq-bench-") as directory:
        command = [
            sys.executable,
            "-m",
            "rewindmq",
            "up",
            "--brokers",
            str(brokers),
            "--port",
            "0",
            "--dir",
            directory,
            "--ready-json",
        ]
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith("{"):
                    yield json.loads(line), time.perf_counter() - started
                    break
            else:
                raise SystemExit("bench: the cluster did not start")
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(_START_SECONDS)


@contextmanager
def on_one_core(*pids: int) -> Iterator[None]:
    """Keep these processes and this one on the same core (Linux)."""
    all_pids = (os.getpid(), *pids)
    before = {pid: os.sched_getaffinity(pid) for pid in all_pids}
    core = {min(before[os.getpid()])}
    try:
        for pid in all_pids:
            os.sched_setaffinity(pid, core)
        yield
    finally:
        for pid, cores in before.items():
            os.sched_setaffinity(pid, cores)


def process_pids(ready: dict[str, Any]) -> list[int]:
    """Return the process ids in a cluster's ready line, the name server's first."""
    return [ready["namesrv"]["pid"], *(broker["pid"] for broker in ready["brokers"].values())]


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has used so far, user and system (Linux)."""
    # Fields 14 and 15 of proc(5). The process's name, which comes before them, may contain spaces.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_megabytes(pid: int) -> float:
    """Return the resident memory of a process, including shared pages, in MB of 10^6 bytes (Linux)."""
    return _status_megabytes(pid, "VmRSS")


def private_megabytes(pid: int) -> float:
    """Return the resident memory of a process without pages of files, in MB of 10^6 bytes (Linux)."""
    return _status_megabytes(pid, "RssAnon")


def _status_megabytes(pid: int, field: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise SystemExit(f"bench: process {pid} has no memory figure in /proc")
