"""``rewindmq race list`` and ``race run``: output, exit codes and errors."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from rewindmq.__main__ import main
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.play.run import Plan, Staging, play_simulated
from rewindmq.race.play.run_many import default_jobs, play_many
from rewindmq.race.scenario.catalogue import SCENARIOS
from tests.support.processes import WAIT_SECONDS, children, needs_proc, wait_until

R1 = Plan("R1", Profile.V49, ResetMode.CLASSIC)


def race(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["race", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize("width", [80, 120, 200])
def test_the_list_is_a_line_per_race_and_fits(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    code, out, _ = race(capsys, "list")
    lines = out.splitlines()
    assert code == 0
    assert max(map(len, lines)) <= width
    assert not [line for line in lines if line != line.rstrip()]
    end = lines.index("SEED with unguarded: classic 1, server 01, fenced 1")
    rows = {line.split()[0]: line for line in lines[2:end]}
    assert list(rows) == list(SCENARIOS)
    assert end - 2 == len(rows)
    assert rows["R1"].split()[-12:] == ["1", "1", "1", "·", "0", "0", "·", "0", "·", "·", "·", "·"]
    assert rows["R4"].split()[-12:-8] == ["23", "23", "23", "·"]
    assert rows["S1"].split()[-12:-8] == ["-"] * 4
    assert ("releases" in lines[1]) is (width >= 120)
    assert ("4.2.0, 4.9.4, 5.3.3 (classic)" in rows["R1"]) is (width >= 120)


def test_a_list_for_a_pipe_is_complete(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    _, out, _ = race(capsys, "list")
    for known in SCENARIOS.values():
        assert re.search(rf"^{known.id} +{re.escape(known.title)} ", out, re.MULTILINE)
    assert "…" not in out


@pytest.mark.parametrize("width", [80, 120])
def test_details_of_some_races_are_printed_on_request(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    code, out, _ = race(capsys, "list", "seed", "S1")
    assert code == 0
    assert max(map(len, out.splitlines())) <= width
    seed, s1 = (" ".join(part.split()) for part in out.split("\n\n"))
    assert seed.startswith(
        f"SEED: {SCENARIOS['SEED'].title} releases: {SCENARIOS['SEED'].versions} classic: kept"
    )
    assert "server: L0 with v42 v49 epoch, kept with v53, L0 L1 with unguarded" in seed
    assert "classic: no such race server: L0 fenced: kept closed by:" in s1


def test_the_list_knows_no_other_races(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = race(capsys, "list", "R1", "R1x")
    assert (code, out) == (1, "")
    assert err == "rewindmq race: there is no race 'R1x'; did you mean R1?\n"


def test_some_races_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = race(capsys, "list", "r1", "orderly", "--json")
    first, second = json.loads(out)
    assert (first["id"], second["id"]) == ("R1", "ORDERLY")


def test_the_list_as_json_holds_every_case(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = race(capsys, "list", "--json")
    rows = {row["id"]: row for row in json.loads(out)}
    assert code == 0
    assert rows.keys() == SCENARIOS.keys()
    assert {"profile": "v49", "mode": "classic", "outcome": ["L1"]} in rows["R1"]["cases"]
    assert sum(len(row.get("cases", ())) for row in rows.values()) == sum(
        len(scenario.cases) for scenario in SCENARIOS.values()
    )


def test_a_run_prints_its_outcome_and_whether_that_is_documented(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, err = race(capsys, "run", "r1")
    assert (code, err) == (0, "")
    first, *rest, last = out.splitlines()
    assert first == "R1: the broker answers a pull in flight only after the wait"
    assert re.fullmatch(r"R1, v49, classic, simulated: L1, as documented, \d+\.\d\d s", last)
    assert any("10 was stored (by a" in line for line in rest)
    assert max(map(len, rest)) <= 120


def test_profile_and_mode_choose_the_case(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = race(capsys, "run", "R1", "--profile", "epoch", "--mode", "fenced")
    assert code == 0
    assert "epoch, fenced, simulated: kept, as documented" in out


def test_a_single_remedy_is_added_to_the_clients(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = race(capsys, "run", "R1", "--remedy", "F1")
    assert code == 0
    assert "R1, v49 with F1, classic, simulated: kept, as documented" in out
    _, out, _ = race(capsys, "run", "R1", "--remedy", "F2", "--json")
    result = json.loads(out)
    assert (result["profile"], result["remedy"], result["documented"]) == ("v49", "F2", ["L1"])
    # Epochs take effect only with fenced resets.
    _, out, _ = race(capsys, "run", "S1", "--remedy", "F12")
    assert "S1, v49 with F12, fenced, simulated: kept, as documented" in out


def test_the_list_shows_the_outcomes_with_single_remedies(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    _, out, _ = race(capsys, "list", "R1")
    told = "F1 kept, F2 L1, F3 kept, F8 kept with v49 in classic mode; F12 kept with v49 in fenced mode"
    assert told in " ".join(out.split())
    _, out, _ = race(capsys, "list", "R1", "--json")
    expected = {"remedy": "F2", "profile": "v49", "mode": "classic", "outcome": ["L1"]}
    assert expected in json.loads(out)[0]["remedies"]


def test_an_undocumented_outcome_is_exit_code_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    from rewindmq.race.scenario import catalogue

    kept = dict.fromkeys(SCENARIOS["R1"].cases, frozenset[object]())
    doubtful = {**SCENARIOS, "R1": replace(SCENARIOS["R1"], cases=kept)}  # type: ignore[arg-type]
    monkeypatch.setattr(catalogue, "SCENARIOS", doubtful)
    code, out, _ = race(capsys, "run", "R1", "--repeat", "3")
    assert code == 1
    assert "0 of 3 as documented (kept)" in out
    assert "3 times L1, but kept is documented: seeds 1 2 3" in out


def test_a_race_that_cannot_be_played_to_its_end_is_exit_code_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    from rewindmq.race.errors import RaceError
    from rewindmq.race.scenario import catalogue

    async def play(stage: object) -> None:
        raise RaceError("nothing came of it")

    monkeypatch.setattr(catalogue, "SCENARIOS", {"R1": replace(SCENARIOS["R1"], play=play)})
    code, out, _ = race(capsys, "run", "R1")
    assert code == 1
    assert "v49, classic, simulated: could not be played: nothing came of it" in out


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["R1x"], "there is no race 'R1x'; did you mean R1?"),
        (["nonsense"], "there is no race 'nonsense'; `rewindmq race list` names them all"),
        (
            ["S7", "--mode", "classic"],
            "S7 cannot be played with mode classic, only with server (v42, v49, v53",
        ),
        (["R3b", "--profile", "unguarded"], "R3b cannot be played with profile unguarded, only with classic"),
        (["BROADCAST", "--remedy", "F12"], "BROADCAST cannot be played with mode fenced, only with classic"),
        (
            ["R1", "--remedy", "F1", "--held", "--client-command", "true {namesrv} {topic} {group}"],
            "--remedy changes RewindMQ's own clients, and --client-command names another client",
        ),
        (["R1", "--held", "--seed", "3"], "--seed is for simulated runs; a run with --held has no seed"),
        (
            ["R1", "--report", "/no/such/folder/x.html"],
            "cannot write /no/such/folder/x.html: there is no dir",
        ),
    ],
)
def test_an_error_is_one_line(arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = race(capsys, "run", *arguments)
    assert (code, out) == (1, "")
    assert err.startswith(f"rewindmq race: {text}")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [["--held", "--real"], ["--repeat", "0"], ["--scaled", "0"], ["--mode", "x"]]
)
def test_wrong_usage_is_exit_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["race", "run", "R1", *arguments])
    assert ended.value.code == 2


def test_a_run_as_json_and_as_a_page(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = tmp_path / "r1.html"
    code, out, _ = race(capsys, "run", "R1", "--json", "--report", str(page), "--seed", "5", "--repeat", "2")
    result = json.loads(out)
    assert code == 0
    assert (result["id"], result["documented"], result["asDocumented"]) == ("R1", ["L1"], 2)
    assert [run["number"] for run in result["runs"]] == [5, 6]
    assert result["runs"][0]["violations"][0]["law"] == "stored"
    assert "R1: the broker answers a pull in flight" in page.read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["r1.html"]


def test_a_terminal_without_box_drawing_characters_gets_replacements() -> None:
    # Lines are cut if the terminal's width is known.
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    both = "from rewindmq.__main__ import main; main(['race', 'list']); main(['race', 'run', 'R1'])"
    done = subprocess.run(
        [sys.executable, "-c", both],
        env={**environment, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("the broker answers a pull in flight only after the wait") == 2


@pytest.mark.slow
def test_many_seeds_run_in_separate_processes_and_come_back_in_order() -> None:
    done: list[int] = []
    numbers = range(1, 12)
    outcomes = play_many(R1, numbers, 2, lambda outcome: done.append(outcome.number))
    assert done == [outcome.number for outcome in outcomes] == list(numbers)
    assert all(outcome.is_documented for outcome in outcomes)
    alone = play_simulated(R1, 7)
    assert outcomes[6].verdict == alone.verdict
    assert len(alone.history) > 100


def test_jobs_suit_the_stage() -> None:
    cores = os.cpu_count() or 1
    assert default_jobs(R1, 1000) == cores
    assert default_jobs(R1, 5) == 1
    assert default_jobs(Plan("R1", Profile.V49, ResetMode.CLASSIC, Staging.HELD), 20) == 1
    assert default_jobs(Plan("R1", Profile.V49, ResetMode.CLASSIC, Staging.REAL), 5) == min(5, 2 * cores)


def test_races_are_held_on_real_sockets(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = race(capsys, "run", "R1", "--held", "--json")
    assert code == 0, out


def _interrupt(
    arguments: Sequence[str], number: signal.Signals, started: int, directory: Path
) -> tuple[int, str]:
    """Start a command; send it a signal once it handles signals and has started that many processes.

    Returns:
        Its exit code and output; by then every process that shares its output has ended.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "TMPDIR": str(directory)},
        start_new_session=True,
    )
    with process:
        wait_until(process, lambda: _catches_sigterm(process.pid) and len(children(process.pid)) >= started)
        process.send_signal(number)
        out, _ = process.communicate(timeout=WAIT_SECONDS)
    return process.returncode, out


def _catches_sigterm(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


def _descendants_gone(directory: Path) -> bool:
    """Return True if no process with these temporary files runs any more."""
    # Not ``glob``: it raises when a process ends between two steps.
    for process in Path("/proc").iterdir():
        try:
            if f"TMPDIR={directory}\0".encode() in (process / "environ").read_bytes():
                return False
        except OSError:
            continue
    return True


REAL = ("rewindmq", "race", "run", "R1", "--real")
ALONE = ("rewindmq", "race", "run", "R1", "--repeat", "100000", "--jobs", "1")
MANY = ("rewindmq", "race", "run", "R1", "--repeat", "100000", "--jobs", "2")
THREE = ("rewindmq.race.reproduce_cli", "--json")


@needs_proc
@pytest.mark.parametrize(
    ("arguments", "started", "number"),
    [
        # The signal is sent as soon as the command handles it; when a consumer, the name server and a broker
        # run; when the pool and its resource tracker run; when nine processes run.
        (ALONE, 0, signal.SIGTERM),
        (REAL, 3, signal.SIGINT),
        pytest.param(REAL, 0, signal.SIGINT, marks=pytest.mark.slow),
        pytest.param(REAL, 0, signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param(REAL, 3, signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param(MANY, 3, signal.SIGINT, marks=pytest.mark.slow),
        pytest.param(MANY, 3, signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param(THREE, 9, signal.SIGINT, marks=pytest.mark.slow),
        pytest.param(THREE, 9, signal.SIGTERM, marks=pytest.mark.slow),
    ],
)
def test_an_interrupted_run_leaves_nothing(
    arguments: Sequence[str], started: int, number: signal.Signals, tmp_path: Path
) -> None:
    assert _interrupt(arguments, number, started, tmp_path) == (130, "")
    assert list(tmp_path.iterdir()) == []
    assert _descendants_gone(tmp_path)
