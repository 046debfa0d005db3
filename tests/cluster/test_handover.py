"""The line that a parent writes to a broker's standard input, and how that can fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.remoting.process.runner import read_parent_line
from tests.support.processes import WAIT_SECONDS


@pytest.fixture
def broker_command(tmp_path: Path) -> list[str]:
    command = [sys.executable, "-m", "rewindmq", "broker", "-n", "-", "-p", "0", "--exit-with-parent"]
    return [*command, "--root", str(tmp_path / "store")]


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (b"", "standard input ended before its first line"),
        (b"127.0.0.1:1", "standard input ended before its first line"),
        (b"\xff\n", "the first line of standard input is too long or not UTF-8"),
        (b"x" * 5_000 + b"\n", "the first line of standard input is too long or not UTF-8"),
    ],
)
def test_an_incomplete_or_overlong_first_line_is_an_error(given: bytes, complaint: str) -> None:
    reading, writing = os.pipe()
    try:
        os.write(writing, given)
        os.close(writing)
        with pytest.raises(RewindMQError, match=f"^{complaint}$"):
            read_parent_line(reading)
    finally:
        os.close(reading)


def test_a_bad_first_line_is_a_one_line_error(broker_command: list[str]) -> None:
    result = subprocess.run(broker_command, input=b"nohost\n", capture_output=True, timeout=WAIT_SECONDS)
    assert (result.returncode, result.stdout) == (1, b"")
    assert result.stderr.startswith(b"rewindmq broker: name server address 'nohost' is not host:port")
    assert result.stderr.count(b"\n") == 1


def test_a_broker_serves_while_its_name_server_is_unreachable(broker_command: list[str]) -> None:
    """The broker keeps trying to register. It ignores standard input after the first line, except its end."""
    with subprocess.Popen(
        broker_command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b"127.0.0.1:1\nmore\n")
        process.stdin.flush()
        ready = json.loads(process.stdout.readline())
        assert (ready["ready"], ready["pid"]) == ("broker", process.pid)
        process.stdin.close()
        process.stdin = None
        assert process.wait(WAIT_SECONDS) == 0
        assert b"not registered at name server 127.0.0.1:1" in process.stderr.read()
