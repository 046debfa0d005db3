"""``rewindmq up --dashboard``: the pages are there when it says ready, and gone with it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

import rewindmq.sync
from tests.cluster.up.running_up import running_up
from tests.support.processes import WAIT_SECONDS

# Each starts a cluster and a dashboard.
pytestmark = pytest.mark.slow


def test_the_pages_are_served_beside_the_cluster_and_end_with_it(tmp_path: Path) -> None:
    with running_up(tmp_path, "-p", "0", "--dashboard", "0") as up:
        url = up.ready["dashboard"]
        with urllib.request.urlopen(url, timeout=WAIT_SECONDS) as response:
            assert 'href="/brokers/broker-a/0"' in response.read().decode()
        up.stop()
        with pytest.raises(urllib.error.URLError):
            urllib.request.urlopen(url, timeout=WAIT_SECONDS)


def test_a_dashboard_that_ends_is_reported_and_the_cluster_runs_on(tmp_path: Path) -> None:
    with running_up(tmp_path, "-p", "0", "--dashboard", "0") as up:
        assert up.process.stderr is not None
        os.kill(_dashboard_of(up.process.pid), signal.SIGTERM)
        line = up.process.stderr.readline()
        assert line.startswith("rewindmq up: the dashboard has ended (exit status 0): ")
        assert str(tmp_path) in line
        with rewindmq.sync.AdminClient(up.namesrv) as admin:
            assert [*admin.brokers.examine_broker_cluster_info().broker_addr_table] == ["broker-a"]
        up.stop()


def _dashboard_of(pid: int) -> int:
    """Return the process id of the dashboard among the children of a process."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    (found,) = (
        int(child) for child in children if b"dashboard" in Path(f"/proc/{child}/cmdline").read_bytes()
    )
    return found


def test_a_dashboard_that_cannot_start_stops_the_cluster_with_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = ["up", "--dir", str(tmp_path), "--brokers", "1", "-p", "0", "--dashboard", port]
        done = subprocess.run(
            [sys.executable, "-m", "rewindmq", *command],
            capture_output=True,
            text=True,
            timeout=WAIT_SECONDS,
        )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("rewindmq up: the dashboard did not start: ")
    assert done.stderr.count("\n") == 1
