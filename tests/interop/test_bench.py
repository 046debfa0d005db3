"""``scripts/bench --vs-rocketmq`` measures every row on both sides; no figure is asserted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from interop.toolchains import ROOT, tool

pytestmark = pytest.mark.interop

_SECONDS = 300.0
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


def test_every_row_is_measured(tmp_path: Path) -> None:
    """Both clusters take every load from the official client, and none of its messages fails."""
    for name in ("java", "mvn"):
        tool(name)
    file = tmp_path / "rows.json"
    command = [sys.executable, "-m", "bench", "--vs-rocketmq", "--rounds", "1", "--scale", "0.05"]
    done = subprocess.run(
        [*command, "--json", str(file)], cwd=ROOT, capture_output=True, text=True, timeout=_SECONDS
    )
    # 1: a figure was missed.
    assert done.returncode in (0, 1), done.stderr
    rows = json.loads(file.read_text())
    assert len(rows) == len(_ROWS)
    for row, name in zip(rows, _ROWS, strict=True):
        assert row["name"].startswith(name)
        assert row["name"] in done.stdout
        assert "failed" not in row["note"], row["note"]
        for side in (row["real"], row["ours"]):
            assert len(side["samples"]) == 1
            assert side["samples"][0] > 0
    assert "never published" in done.stdout


def test_no_other_load_goes_with_it() -> None:
    command = [sys.executable, "-m", "bench", "--vs-rocketmq", "--only", "send"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "--vs-rocketmq runs alone" in done.stderr
