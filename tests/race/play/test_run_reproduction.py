"""``scripts/reproduce_race``: the suspected cause loses no reset in 4.9.4, but another cause does."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rewindmq.race.reproduce_cli import main

DOCUMENTED = {"suspected": ["L1"], "shipped": [], "real hole": ["L1"]}
# Seconds after which a run that hangs is ended; it takes a bit more than a minute.
_PATIENCE = 600


def check(out: str) -> None:
    runs = {run["name"]: run for run in json.loads(out)["runs"]}
    assert {name: run["outcome"] for name, run in runs.items()} == DOCUMENTED
    for run in runs.values():
        offsets = [change["offset"] for change in run["stored"] if change["seconds"] > 9.0]
        assert run["target"] == 0
        assert 0 in offsets
        if run["outcome"]:
            assert max(offsets) == run["restartedAt"] or run["restartedAt"] in offsets
            assert run["neverRedelivered"]
            assert max(run["neverRedelivered"]) < run["restartedAt"]
        else:
            assert run["neverRedelivered"] == []


@dataclass(frozen=True, slots=True)
class Played:
    """Output of runs in real time that were all started together.

    Attributes:
        objects: JSON object of each run with ``--json``.
        page: report of the first of these runs.
        text: output of the run without ``--json``.
    """

    objects: list[str]
    page: Path
    text: str


@pytest.fixture(scope="module")
def played(full: bool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """Play one run with ``--json`` (five with ``--full``) and one without, in parallel: they mostly wait."""
    page = tmp_path_factory.mktemp("reproduction") / "lost.html"
    options = [["--json", "--report", str(page)], *[["--json"]] * (4 if full else 0), []]
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(_reproduce(arguments)) for arguments in options]
        for process in running:
            stack.callback(process.terminate)
        *objects, text = [process.communicate(timeout=_PATIENCE)[0] for process in running]
        assert [process.returncode for process in running] == [0] * len(running), "".join((*objects, text))
        yield Played(objects, page, text)


def _reproduce(arguments: list[str]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "rewindmq.race.reproduce_cli", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_E02_E05_E08_two_of_three_runs_lose_the_reset(played: Played) -> None:
    check(played.objects[0])
    assert "How a reset is lost" in played.page.read_text()


@pytest.mark.slow
def test_E02_E05_E08_all_real_time_runs_end_as_documented(played: Played, full: bool) -> None:
    """Check five runs with ``--full``, otherwise one."""
    assert len(played.objects) == (5 if full else 1)
    for out in played.objects:
        check(out)


@pytest.mark.slow
def test_the_text_reports_each_run_during_the_play_and_at_its_end(played: Played) -> None:
    out = played.text
    assert out.rstrip().endswith("All three runs ended as documented.")
    for text in (
        "suspected   administrator: reset to 0",
        "shipped     consumer: a late result is discarded",
        "a second consumer began at 10; never delivered again:",
        "every message from 0 on was delivered again",
    ):
        assert text in out
    assert not [line for line in out.splitlines() if line != line.rstrip()]


def test_an_unwritable_report_is_an_error_before_anything_runs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--report", "/no/such/folder/x.html"]) == 1
    assert capsys.readouterr().err.startswith("reproduce_race: cannot write /no/such/folder/x.html: there is")
