"""The folder of a killed program's cluster stays while a process uses it; the next cluster removes it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import pytest

from rewindmq import LocalCluster
from rewindmq.protocol.files.temporary_folder import remove_abandoned
from tests.cluster.cluster_stage import Watch

PROGRAM: Final = """
import sys
from rewindmq import LocalCluster

cluster = LocalCluster(brokers=1)
cluster.start()
print(cluster.directory, cluster.namesrv.pid, cluster.brokers["broker-a"].pid, flush=True)
sys.stdin.read()
"""


def test_the_next_cluster_removes_the_folder_of_a_killed_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, watch: Watch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as program:
        assert program.stdout is not None
        directory, *pids = program.stdout.readline().split()
        watched = watch(map(int, pids))
        # The servers hold the lock, too: a folder is never removed below a server that has not ended yet.
        for pid in pids:
            descriptors = [str(path.readlink()) for path in Path(f"/proc/{pid}/fd").iterdir()]
            assert f"{directory}/.rewindmq-owner" in descriptors
        assert remove_abandoned() == []
        program.kill()
    watched.wait_gone()
    assert list(tmp_path.iterdir()) == [Path(directory)]
    with LocalCluster(brokers=1) as cluster:
        assert list(tmp_path.iterdir()) == [cluster.directory]
        assert remove_abandoned() == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_folder_that_was_chosen_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even one with the name of a temporary folder, of a cluster that has ended."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    chosen = tmp_path / "rewindmq-mine"
    with LocalCluster(brokers=1, directory=chosen):
        pass
    assert remove_abandoned() == []
    assert (chosen / "broker-a" / "broker.conf").exists()
