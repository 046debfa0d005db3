"""Commands whose standard streams are closed, full, or read by nobody any more."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

TIMEOUT = 120
ALL = "<&- >&- 2>&-"
# Nobody listens at port 1.
NOWHERE = ("-n", "127.0.0.1:1")
PRODUCE = ("produce", "-t", "T", "x", *NOWHERE)
# With and without an event loop, with processes of their own, and with failure.
CLOSED = [
    pytest.param("<&-", PRODUCE, 1, id="produce-stdin"),
    pytest.param(">&-", PRODUCE, 1, id="produce-stdout"),
    pytest.param("2>&-", PRODUCE, 1, id="produce-stderr"),
    pytest.param(">&-", ("race", "list"), 0, id="race-list-stdout"),
    pytest.param(ALL, PRODUCE, 1, id="produce"),
    pytest.param(ALL, ("--help",), 0, id="help"),
    pytest.param(ALL, ("nonsense",), 2, id="unknown"),
    pytest.param(ALL, ("race", "run", "R1", "--repeat", "2", "--jobs", "2"), 0, id="race-run"),
    pytest.param(ALL, ("consume", "-t", "T", "-g", "G", *NOWHERE), 1, id="consume"),
    pytest.param(ALL, ("admin", "topicList", *NOWHERE), 1, id="admin"),
]
# What prints something and succeeds.
TELLING = [("--version",), ("produce", "--help"), ("race", "list"), ("race", "explore"), ("admin", "help")]


def _shell(redirection: str, *arguments: str) -> list[str]:
    return ["sh", "-c", f'exec "$@" {redirection}', "sh", sys.executable, "-m", "rewindmq", *arguments]


def _environment() -> dict[str, str]:
    """With output buffered, as it is for users."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


@pytest.mark.parametrize(("redirection", "arguments", "code"), CLOSED)
def test_a_command_ends_with_closed_streams_as_it_does_with_open_ones(
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
    """The descriptor once went to a socket: what was printed landed in it, and libuv ended the process with
    134 when it closed it."""
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


@pytest.mark.parametrize("arguments", TELLING, ids=" ".join)
def test_a_reader_that_left_is_exit_code_1_without_a_word(arguments: tuple[str, ...]) -> None:
    """As in ``rewindmq race list | head -1``: the interpreter must not find it out at its end."""
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


@pytest.mark.parametrize("arguments", TELLING, ids=" ".join)
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


def test_messages_that_nobody_reads_change_no_exit_code() -> None:
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
