"""The JUnit 5 extension and the Go helper of docs/testkit/other-languages.md, with official clients."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.cluster.up.running_up import running_up
from tools.interop.kit.helpers import go_test, java_test

pytestmark = [pytest.mark.unlisted, pytest.mark.timeout(900)]

# A test's own waits are two minutes each.
_LIMIT_SECONDS: Final = 600


def test_junit_tests_start_a_cluster_and_control_it(tmp_path: Path) -> None:
    """The extension runs the command ``rewindmq`` of the PATH."""
    command = tmp_path / "rewindmq"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m rewindmq "$@"\n')
    command.chmod(0o755)
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("REWINDMQ_CONTROL")
    }
    environment["PATH"] = f"{tmp_path}:{environment['PATH']}"
    output = run(java_test(), environment, tmp_path)
    assert "2 tests successful" in output, output


def test_go_tests_control_a_running_cluster(tmp_path: Path) -> None:
    with running_up(tmp_path / "data", "-p", "0", "--control-port", "0") as up:
        entrances = up.ready["entrances"]
        environment = {
            **os.environ,
            "REWINDMQ_CONTROL": entrances["control"],
            "REWINDMQ_CONTROL_TOKEN_FILE": entrances["token_file"],
        }
        output = run(go_test(), environment, tmp_path)
        up.stop()
    assert "--- PASS: TestMessagesWaitWhilePullsAreHeld" in output, output
    assert "--- PASS: TestABillIsRefusedRestoredAndDueLater" in output, output


def run(command: list[str], environment: dict[str, str], directory: Path) -> str:
    """Run a program, which must succeed, and return its output."""
    # The official clients write logs below HOME.
    environment = {**environment, "HOME": str(directory)}
    done = subprocess.run(
        command,
        env=environment,
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_LIMIT_SECONDS,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout
