"""A dashboard beside ``rewindmq up`` that ends by itself is reported once, with its status and last line."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import pytest

from rewindmq.cluster.errors import ClusterError
from rewindmq.cluster.up.dashboard_process import dashboard_process
from rewindmq.protocol.remoting.runtime import system_runtime

NOBODY = "127.0.0.1:1"


async def test_the_end_of_the_dashboard_is_reported_once_with_its_status_and_last_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "dashboard.log"
    log.write_text("a line of yesterday\n")
    async with dashboard_process(
        NOBODY, 0, log, system_runtime().timers, history=tmp_path, time_scale=1.0
    ) as dashboard:
        dashboard.report_ended()
        assert capfd.readouterr().err == ""
        with log.open("a") as file:
            file.write("the last \x1b[31mword\n\n")
        os.kill(dashboard.pid, signal.SIGKILL)
        await dashboard.wait()
        dashboard.report_ended()
        log.unlink()
        dashboard.report_ended()
    said = "the dashboard has ended (killed by SIGKILL): the last \\x1b[31mword; the cluster runs on"
    assert capfd.readouterr().err == f"rewindmq up: {said}, see {log}\n"


async def test_a_dashboard_that_does_not_start_is_not_explained_with_a_line_of_an_earlier_one(
    tmp_path: Path,
) -> None:
    log = tmp_path / "dashboard.log"
    log.write_text("a line of yesterday\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ClusterError, match=r"did not start: .*in use") as raised:
            async with dashboard_process(
                NOBODY, port, log, system_runtime().timers, history=tmp_path, time_scale=1.0
            ):
                raise AssertionError("it started")
    assert "yesterday" not in str(raised.value)
