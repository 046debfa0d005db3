"""``race explore`` and ``race replay``: what they print, write and refuse."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rewindmq.race.commands import explore, replay
from rewindmq.race.errors import RaceError
from tests.support.processes import WAIT_SECONDS, children, needs_proc, wait_until


def run_explore(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    explore.add_arguments(parser)
    return explore.run(parser.parse_args([*arguments, "--jobs", "1"]))


def run_replay(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    replay.add_arguments(parser)
    return replay.run(parser.parse_args(arguments))


@pytest.fixture(scope="module")
def lost_schedule(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The text of the shortest schedule that loses an unflushed epoch."""
    path = tmp_path_factory.mktemp("explore") / "lost.schedule"
    arguments = ["crash-broker", "--fault", "flush", "--late", "0", "--exhaustive", "--save", str(path)]
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert run_explore(*arguments) == 0
    assert "stored:" in out.getvalue()
    return path.read_text()


@pytest.fixture
def saved(lost_schedule: str, tmp_path: Path) -> Path:
    """That schedule in a file of its own."""
    path = tmp_path / "lost.schedule"
    path.write_text(lost_schedule)
    return path


def test_without_a_model_they_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_explore() == 0
    assert "one-reset" in capsys.readouterr().out
    assert run_explore("--fault", "list", "--json") == 0
    assert "flush" in json.loads(capsys.readouterr().out)


def test_a_lost_reset_is_saved_and_replayed(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = saved.read_text()
    assert "model: crash-broker\nmode: fenced\nprofile: epoch\n" in text
    steps = text.partition("steps:\n")[2].splitlines()
    assert steps[-1] == "broker-a is killed"
    assert len(steps) <= 4
    page = tmp_path / "lost.html"
    assert run_replay(str(saved), "--report", str(page)) == 0
    printed = capsys.readouterr().out
    assert "broker-a is killed" in printed
    assert "stored: queue 0 of broker-a" in printed
    assert "the code has changed" not in printed
    assert page.read_text().startswith("<!doctype html>")


@pytest.mark.slow
def test_a_report_shows_the_lost_reset_even_if_a_later_one_was_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "lost.html"
    assert run_explore("two-resets", "--mode", "server", "--schedules", "200", "--report", str(page)) == 0
    printed = capsys.readouterr().out
    sentence = next(line for line in printed.splitlines() if line.startswith("stored: "))
    assert "after the reset to 0" in sentence
    assert sentence.removeprefix("stored: ") in page.read_text()
    assert "The reset was lost: L2" in page.read_text()


def test_a_replay_is_byte_identical(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    digests = []
    for _ in range(2):
        assert run_replay(str(saved), "--json") == 0
        digests.append(json.loads(capsys.readouterr().out)["digest"])
    assert digests[0] == digests[1]


def test_a_schedule_of_changed_code_names_the_step_that_no_longer_exists(saved: Path) -> None:
    text = (
        saved.read_text()
        .replace("INVOKE_BROKER_TO_RESET_OFFSET", "RESET_EVERYTHING")
        .replace("code: ", "code: x")
    )
    saved.write_text(text)
    with pytest.raises(
        RaceError,
        match=r"choice 2 of the schedule no longer exists: '.*RESET_EVERYTHING.*the code has changed",
    ):
        run_replay(str(saved))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("steps:", "stops:"), "no line 'steps:'"),
        (("model: crash-broker", "model: nix"), "no such model: 'nix'"),
        (("mode: fenced", "mode: nix"), r"lost.*: no such mode: 'nix' \(known: classic, server, fenced\)"),
        (("profile: epoch", "profile: nix"), r"no such profile: 'nix' \(known: v42, .*epoch"),
        (("late: 0", "late: some"), "late 'some' is not a number"),
        (("late: 0\n", ""), "no schedule: it has no late"),
        (("late: 0", "late"), "'late' is not KEY: VALUE"),
        (("fault: flush", "fault: nix"), "no such fault: 'nix'"),
    ],
)
def test_a_damaged_schedule_is_refused(saved: Path, change: tuple[str, str], complaint: str) -> None:
    saved.write_text(saved.read_text().replace(*change))
    with pytest.raises(RaceError, match=complaint):
        run_replay(str(saved))


def test_unknown_models_faults_and_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RaceError, match=r"no such model: 'nix' \(known: one-reset"):
        run_explore("nix")
    with pytest.raises(RaceError, match="no such fault: 'nix'"):
        run_explore("one-reset", "--fault", "nix")
    with pytest.raises(RaceError, match="no directory"):
        run_explore("one-reset", "--save", str(tmp_path / "no" / "file"))
    with pytest.raises(RaceError, match="cannot read the schedule"):
        run_replay(str(tmp_path / "none"))


def test_a_search_that_misses_the_expected_violation_exits_1(capsys: pytest.CaptureFixture[str]) -> None:
    # In the default order, no broker is killed at a critical moment.
    assert run_explore("crash-broker", "--fault", "flush", "--schedules", "1") == 1
    assert "not the expected result: no law was broken" in capsys.readouterr().out


def test_a_random_search_prints_how_many_schedules_it_drew_again(capsys: pytest.CaptureFixture[str]) -> None:
    random = ("crash-broker", "--mode", "fenced", "--schedules", "12")
    assert run_explore(*random, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schedules"] == 12
    assert found["run_per_second"] == pytest.approx(
        found["per_second"] * (12 - found["drawn_again"]) / 12, abs=0.2
    )
    assert run_explore(*random) == 0
    printed = capsys.readouterr().out
    assert f"12 schedules drawn ({found['drawn_again']} drawn again) in " in printed
    assert "/s different and run; " in printed
    # A single schedule is never drawn again; the text still is that of a random search.
    assert run_explore("crash-broker", "--mode", "fenced", "--schedules", "1") == 0
    assert "1 schedules drawn (0 drawn again) in " in capsys.readouterr().out


_SEARCH = """
import argparse, sys
from rewindmq.race.commands import explore
parser = argparse.ArgumentParser()
explore.add_arguments(parser)
try:
    explore.run(parser.parse_args(["one-reset", "--schedules", "1000000", "--jobs", "2"]))
except KeyboardInterrupt:
    sys.exit(130)
"""


@needs_proc
# Not "computing": it waits for processes to start, which takes minutes at the lowest priority beside others.
@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        pytest.param(signal.SIGINT, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, marks=pytest.mark.slow),
    ],
)
def test_an_interrupted_search_leaves_no_process(number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _SEARCH], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as search:
        try:
            wait_until(search, lambda: len(children(search.pid)) >= 2)
            search.send_signal(number)
            # Workers have inherited the pipe: it ends with the last process.
            search.communicate(timeout=WAIT_SECONDS)
        finally:
            search.kill()
    assert search.returncode == 130
