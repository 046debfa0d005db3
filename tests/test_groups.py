"""``scripts/test --long --interop``: what the two halves and the two groups come to."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"
PASSED, FAILED, INTERRUPTED, BROKEN, NONE = 0, 1, 2, 3, 5
# Stands for the environment's Python: tells what it was called with, and ends with the code for its group.
PYTEST = """\
#!/usr/bin/env bash
echo "ran $*"
case "$*" in
*"long and computing"*) {computing} ;;
*"long and not computing"*) exit {waiting} ;;
*"-m interop"*) exit {interop} ;;
esac
"""
COMPUTING = "long and computing"


def markers(out: str) -> list[str]:
    """What was asked for in turn, as it was told."""
    return re.findall(r"^ran .*-m (.*) -k", out, re.MULTILINE)


def run(
    directory: Path,
    *,
    groups: str,
    interop: int = PASSED,
    waiting: int = PASSED,
    computing: str = "exit 0",
) -> tuple[int, str]:
    """The exit code and what was said, with each part ending as told."""
    python = directory / "python"
    python.write_text(PYTEST.format(computing=computing, waiting=waiting, interop=interop))
    python.chmod(0o755)
    script = (
        f'set -euo pipefail; {groups}; PYTHON={python}; . {SCRIPTS}/groups.sh; run_groups -k "some of them"'
    )
    done = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "TMPDIR": str(directory)},
    )
    assert done.stderr == ""
    assert [path.name for path in directory.iterdir()] == ["python"]
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("interop", "waiting", "computing", "code"),
    [
        (PASSED, PASSED, PASSED, PASSED),
        (FAILED, PASSED, PASSED, FAILED),
        (PASSED, FAILED, PASSED, FAILED),
        (PASSED, PASSED, FAILED, FAILED),
        (PASSED, PASSED, BROKEN, BROKEN),
        # What pytest says of a file that it cannot import, too.
        (PASSED, PASSED, INTERRUPTED, INTERRUPTED),
        # Arguments may leave a group without tests, but not all of them.
        (NONE, PASSED, NONE, PASSED),
        (NONE, NONE, PASSED, PASSED),
        (FAILED, NONE, NONE, FAILED),
        (NONE, NONE, NONE, NONE),
    ],
)
def test_one_failure_fails_the_whole(
    interop: int, waiting: int, computing: int, code: int, tmp_path: Path
) -> None:
    done, out = run(
        tmp_path, groups="interop=1 long=1", interop=interop, waiting=waiting, computing=f"exit {computing}"
    )
    assert (done, markers(out)) == (code, ["interop", "long and not computing", COMPUTING])
    assert out.count(" -k some of them") == 3


@pytest.mark.parametrize(
    ("groups", "ran"),
    [("interop=1 long=", ["interop"]), ("interop= long=1", ["long and not computing", COMPUTING])],
)
def test_a_group_runs_alone(groups: str, ran: list[str], tmp_path: Path) -> None:
    code, out = run(tmp_path, groups=groups)
    assert (code, markers(out)) == (PASSED, ran)


def test_an_interrupt_ends_what_runs_beside(tmp_path: Path) -> None:
    code, out = run(tmp_path, groups="interop= long=1", computing="exec sleep 60", waiting=INTERRUPTED)
    assert (code, markers(out)) == (INTERRUPTED, ["long and not computing"])


def test_what_runs_beside_leaves_the_processor_to_the_rest(tmp_path: Path) -> None:
    _, out = run(tmp_path, groups="interop= long=1", computing="nice")
    assert out.splitlines()[-1] == "19"
