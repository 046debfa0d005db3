"""``scripts/reproduce_race``: the seed's suspicion does not hold, and the reset is lost all the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rewindmq.race.reproduce_cli import main

DOCUMENTED = {"suspected": ["L1"], "shipped": [], "real hole": ["L1"]}


def check(capsys: pytest.CaptureFixture[str], *options: str) -> None:
    code = main(["--json", *options])
    runs = {run["name"]: run for run in json.loads(capsys.readouterr().out)["runs"]}
    assert {name: run["outcome"] for name, run in runs.items()} == DOCUMENTED
    assert code == 0
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
    check(capsys, "--time-scale", "0.05", "--report", str(page))
    assert "How a reset is lost" in page.read_text()


@pytest.mark.long
@pytest.mark.realtime
def test_E02_E05_E08_in_real_time_5_of_5(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(5):
        check(capsys)


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
