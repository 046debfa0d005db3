"""Ctrl-C at any moment ends a command quietly with 130, and leaves no process and no temporary file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from rewindmq import Message
from rewindmq.sync import LocalCluster
from tests.cluster.cluster_stage import ProcessesOf
from tests.support.processes import WAIT_SECONDS

# A shell reports both as 130. A command ends by the signal itself while it has nothing to clean up.
INTERRUPTED: Final = (130, -signal.SIGINT)

# Runs `rewindmq WORDS` and sends itself SIGINT at a moment: the k-th import, opened file, socket operation or
# started process; with "again" at every 16th moment from then on, too. MOMENT 0 is never; then the last line
# of the output is the number of moments.
PROGRAM: Final = """
import os, signal, sys
from rewindmq.__main__ import main

moment, is_impatient = int(sys.argv[1]), sys.argv[2] == "again"
del sys.argv[1:3]
passed = 0

def count(event, arguments):
    global passed
    if event in ("import", "open", "subprocess.Popen", "os.listdir") or event.startswith("socket."):
        passed += 1
        if passed == moment or is_impatient and 0 < moment < passed and passed % 16 == 0:
            os.kill(os.getpid(), signal.SIGINT)

sys.addaudithook(count)
code = main()
if moment == 0:
    print(passed, flush=True)
sys.exit(code)
"""


def start(moment: int, words: Sequence[str], *, again: bool = False) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(moment), "again" if again else "once", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def count_moments(words: Sequence[str], line: str) -> int:
    """Return the number of moments until a command has printed a line and was stopped."""
    with start(0, words) as process:
        assert process.stdout is not None
        assert line in process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=WAIT_SECONDS)
        assert err == ""
        return int(out.splitlines()[-1])


def interrupt(moment: int, words: Sequence[str], *, again: bool = False) -> None:
    """Interrupt a command at a moment, or after its first line if it comes before; require a quiet end."""
    with start(moment, words, again=again) as process:
        assert process.stdout is not None
        if process.stdout.readline():
            process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=WAIT_SECONDS)
    assert (process.returncode in INTERRUPTED, err) == (True, ""), (moment, process.returncode)


def spread(count: int, moments: int) -> Iterator[int]:
    """Yield ``count`` moments from 1 to ``moments``, evenly."""
    yield from sorted({1 + index * (moments - 1) // (count - 1) for index in range(count)})


@pytest.mark.parametrize("moment", [1, 40])
def test_a_command_is_interrupted_while_it_loads(moment: int) -> None:
    interrupt(moment, ["members"])


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.slow
def test_up_is_interrupted_at_many_moments(
    again: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes_of: ProcessesOf
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    registry = f"rewindmq-{os.getuid()}"
    words = ["up", "-p", "0", "--brokers", "1", "--topic", "orders", "--ready-json"]
    moments = count_moments(words, '"ready"')
    for moment in spread(16, moments):
        interrupt(moment, words, again=again)
        assert processes_of(tmp_path) == [], moment
        assert not [path for path in tmp_path.glob("rewindmq-*") if path.name != registry], moment


@pytest.mark.parametrize(
    "words", [("peek", "orders", "--follow", "--json"), ("lag", "--watch", "0.1", "--json")]
)
@pytest.mark.slow
def test_a_command_that_follows_is_interrupted_at_many_moments(words: tuple[str, ...]) -> None:
    with LocalCluster(1) as cluster, cluster.producer("p") as producer:
        producer.send(Message("orders", b"1"))
        words = (*words, "-n", cluster.namesrv_address)
        for moment in spread(16, count_moments(words, "{")):
            interrupt(moment, words)
