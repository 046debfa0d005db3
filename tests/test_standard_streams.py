"""Commands whose standard streams are closed, full, or pipes without a reader."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

TIMEOUT = 120
ALL = "<&- >&- 2>&-"
# No process listens at port 1.
NOWHERE = ("-n", "127.0.0.1:1")
PRODUCE = ("produce", "-t", "T", "x", *NOWHERE)
# Commands with and without an event loop, commands that start processes, and commands that fail.
CLOSED = [
    pytest.param("<&-", PRODUCE, 1, id="produce-stdin"),
    pytest.param(">&-", PRODUCE, 1, id="produce-stdout"),
    pytest.param("2>&-", PRODUCE, 1, id="produce-stderr"),
    pytest.param(">&-", ("race", "list"), 0, id="race-list-stdout"),
    pytest.param(ALL, PRODUCE, 1, id="produce"),
    pytest.param(ALL, ("--help",), 0, id="help"),
    pytest.param(ALL, ("nonsense",), 2, id="unknown"),
    pytest.param(
        ALL,
        ("race", "run", "R1", "--repeat", "2", "--jobs", "2"),
        0,
        id="race-run",
        marks=pytest.mark.slow,
    ),
    pytest.param(ALL, ("consume", "-t", "T", "-g", "G", *NOWHERE), 1, id="consume"),
    pytest.param(ALL, ("admin", "topicList", *NOWHERE), 1, id="admin"),
]
# Commands that print something and succeed.
PRINTING = [("--version",), ("produce", "--help"), ("race", "list"), ("race", "explore"), ("admin", "help")]


def _shell(redirection: str, *arguments: str) -> list[str]:
    return ["sh", "-c", f'exec "$@" {redirection}', "sh", sys.executable, "-m", "rewindmq", *arguments]


def _environment() -> dict[str, str]:
    """Return the environment without PYTHONUNBUFFERED, so that output is buffered as for users."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


@pytest.mark.parametrize(("redirection", "arguments", "code"), CLOSED)
def test_a_command_has_the_same_exit_code_with_closed_streams(
    redirection: str, arguments: tuple[str, ...], code: int
) -> None:
    done = subprocess.run(
        _shell(redirection, *arguments), capture_output=True, text=True, timeout=TIMEOUT, env=_environment()
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == "" or ">&-" not in redirection.split()
    if "2>&-" not in redirection.split():
        assert bool(done.stderr) is (code != 0)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs Linux's list of descriptors")
@pytest.mark.parametrize(
    ("kind", "redirection", "closed"),
    [("namesrv", "<&-", 0), ("namesrv", ">&-", 1), ("namesrv", "2>&-", 2), ("broker", ">&-", 1)],
)
def test_a_server_serves_with_a_closed_stream_and_stops_in_order(
    kind: str, redirection: str, closed: int, tmp_path: Path
) -> None:
    """The closed descriptor is not reused for a socket.

    It once was: output went into the socket, and libuv aborted the process with exit code 134 at the close.
    """
    with subprocess.Popen(
        _shell(redirection, kind, "-p", "0", "--root", str(tmp_path)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=_environment(),
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        stream, word = (process.stderr, " serves at ") if closed == 1 else (process.stdout, '"ready"')
        assert any(word in line for line in stream)
        target = Path(f"/proc/{process.pid}/fd/{closed}").readlink()
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, target) == (0, Path(os.devnull)), errors


@pytest.mark.parametrize("arguments", PRINTING, ids=" ".join)
def test_a_pipe_without_a_reader_is_exit_code_1_without_a_message(arguments: tuple[str, ...]) -> None:
    """As in ``rewindmq race list | head -1``: the interpreter must not report it at its exit."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as output:
        done = subprocess.run(
            [sys.executable, "-m", "rewindmq", *arguments],
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            timeout=TIMEOUT,
            env=_environment(),
        )
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize("arguments", PRINTING, ids=" ".join)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's full device")
def test_output_that_cannot_be_written_is_one_line_and_exit_code_1(arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as output:
        done = subprocess.run(
            [sys.executable, "-m", "rewindmq", *arguments],
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            timeout=TIMEOUT,
            env=_environment(),
        )
    assert (done.returncode, done.stderr) == (1, f"rewindmq {arguments[0]}: No space left on device\n")


def test_an_error_stream_without_a_reader_does_not_change_the_exit_code() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as output:
        done = subprocess.run(
            [sys.executable, "-m", "rewindmq", "nonsense"],
            stdout=subprocess.DEVNULL,
            stderr=output,
            timeout=TIMEOUT,
            env=_environment(),
        )
    assert done.returncode == 2
