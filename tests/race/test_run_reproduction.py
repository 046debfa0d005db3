"""``scripts/reproduce_race``: the seed's suspicion does not hold, and the reset is lost all the same."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from rewindmq.race.reproduce_cli import main

DOCUMENTED = {"suspected": ["L1"], "shipped": [], "real hole": ["L1"]}


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


@pytest.mark.long
def test_E02_E05_E08_two_of_three_runs_lose_the_reset(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "lost.html"
    assert main(["--json", "--time-scale", "0.05", "--report", str(page)]) == 0
    check(capsys.readouterr().out)
    assert "How a reset is lost" in page.read_text()


@pytest.mark.long
@pytest.mark.realtime
def test_E02_E05_E08_in_real_time_5_of_5() -> None:
    """All at the same time: a minute of waiting each."""
    command = [sys.executable, "-m", "rewindmq.race.reproduce_cli", "--json"]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(5)]
    with contextlib.ExitStack() as stack:
        for process in running:
            stack.enter_context(process)
            stack.callback(process.terminate)
        outputs = [process.communicate(timeout=300)[0] for process in running]
    assert [process.returncode for process in running] == [0] * 5
    for out in outputs:
        check(out)


@pytest.mark.long
def test_the_text_tells_of_each_run_as_it_happens_and_in_the_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--time-scale", "0.05"]) == 0
    out = capsys.readouterr().out
    assert out.rstrip().endswith("All three went as documented.")
    for text in (
        "suspected   administrator: reset to 0",
        "shipped     consumer: a late result is discarded",
        "a second consumer began at 10; never delivered again:",
        "every message from 0 on was delivered again",
    ):
        assert text in out
    assert not [line for line in out.splitlines() if line != line.rstrip()]


def test_a_report_that_cannot_be_written_is_said_before_anything_runs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--report", "/no/such/folder/x.html"]) == 1
    assert capsys.readouterr().err.startswith("reproduce_race: cannot write /no/such/folder/x.html: there is")
