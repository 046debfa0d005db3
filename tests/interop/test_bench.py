"""``scripts/bench --vs-rocketmq`` measures every row on both sides; no figure is asserted."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.java_load import JavaLoad
from bench.vs_rocketmq_watched import JavaGroups
from bench.watched import WatchedLoad, measure
from rewindmq import LocalCluster
from tools.interop.toolchains import ROOT, tool

_SECONDS = 300.0
# Five processes, 30 s each at most.
_STOP_SECONDS = 150.0
_ROWS = (
    "start, command to serving",
    "idle memory, broker",
    "idle memory, name server",
    "idle memory, both",
    "send sync, 1 thread, 100 B",
    "send sync, 1 thread, 1 KiB",
    "send sync, 32 threads, 100 B",
    "send sync, 32 threads, 1 KiB",
    "send async, 256 in flight, 100 B",
    "send async, 256 in flight, 1 KiB",
    "send batch of 64 x 100 B",
    "push consume",
)
_TIMER_ROWS = (
    "1,000 timers due in one second",
    "timer precision",
    "memory for 10,000 open timers",
)
_POP_ROWS = (
    "POP + ACK, 4 queues, batches of 32, 4 consumers",
    "POP + ACK, 4 queues, batches of 32, 4 consumers: CPU",
    "POP + ACK, one at a time, 32 consumers",
    "POP + ACK, one at a time, 32 consumers: CPU",
)


@pytest.mark.interop(full_only="no figure is asserted")
def test_every_row_is_measured(tmp_path: Path) -> None:
    """The official client sends every load to both clusters, and no message fails."""
    for name in ("java", "mvn"):
        tool(name)
    output = _check_rows(tmp_path / "rows.json", _ROWS, "both", "0.05")
    assert "never published" in output


@pytest.mark.interop(full_only="no figure is asserted")
@pytest.mark.unlisted
@pytest.mark.parametrize(
    ("part", "names"), [("timers", _TIMER_ROWS), ("pop", _POP_ROWS)], ids=["timers", "pop"]
)
def test_every_row_with_rocketmq_5_is_measured(tmp_path: Path, part: str, names: tuple[str, ...]) -> None:
    """No timer message is lost or early, and each popped message is acknowledged once."""
    for name in ("java", "mvn"):
        tool(name)
    assert "5.5" in _check_rows(tmp_path / "rows.json", names, part, "0.01")


def _check_rows(file: Path, names: tuple[str, ...], part: str, scale: str) -> str:
    """Run a comparison, check its rows, and return its output."""
    command = [sys.executable, "-m", "bench", "--vs-rocketmq", part, "--rounds", "1", "--scale", scale]
    code, output, errors = _run([*command, "--json", str(file)])
    # Exit code 1 means that a figure missed its target.
    assert code in (0, 1), errors
    rows = json.loads(file.read_text())
    assert len(rows) == len(names)
    for row, name in zip(rows, names, strict=True):
        assert row["name"].startswith(name)
        assert row["name"] in output
        assert "failed" not in row["note"], row["note"]
        for side in (row["rocketmq"], row["rewindmq"]):
            assert len(side["samples"]) == 1
            assert side["samples"][0] > 0
    return output


@pytest.mark.interop(full_only="no figure is asserted")
@pytest.mark.unlisted
def test_a_reset_is_measured_with_the_official_client() -> None:
    """``--vs-rocketmq watch`` does so at RocketMQ, where a group must be idle for a minute before."""
    with LocalCluster(1) as cluster, JavaLoad() as java:
        address = cluster.brokers["broker-a"].address
        join = JavaGroups(java).join
        measured = asyncio.run(
            measure(cluster.namesrv_address, address, WatchedLoad(10, 1), None, "Watched", join=join)
        )
    assert (measured.proven, measured.is_kept, measured.reasons.total()) == (1.0, True, 0)
    assert 0 < measured.seconds < 60


def _run(command: list[str]) -> tuple[int, str, str]:
    """Run a command and return its exit code and output; stop it and its processes if it takes too long."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            output, errors = process.communicate(timeout=_SECONDS)
        except BaseException:
            process.terminate()
            try:
                process.wait(_STOP_SECONDS)
            finally:
                process.kill()
            raise
    return process.returncode, output, errors


def test_a_comparison_refuses_other_loads() -> None:
    command = [sys.executable, "-m", "bench", "--vs-rocketmq", "--only", "send"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "--vs-rocketmq runs alone" in done.stderr
