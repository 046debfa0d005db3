"""What a search finds in the product's code, and that its results are repeatable."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.errors import RaceError
from rewindmq.race.explore.model.models import MODELS
from rewindmq.race.explore.search import paused_worlds
from rewindmq.race.explore.search.job import ScheduleJob
from rewindmq.race.explore.search.pool import Pool
from rewindmq.race.explore.search.search import MIN_REPEATED, Search
from rewindmq.race.explore.search.strategy import Strategy
from tests.race.explore.explore_settings import setting_of

SMALL = [name for name in MODELS if name != "large"]
# By default, only one of these models is searched.
SEARCHED = [pytest.param(name, marks=() if name == "one-reset" else pytest.mark.slow) for name in SMALL]


@pytest.mark.parametrize("model", SEARCHED)
def test_classic_resets_are_lost_in_every_small_model(model: str) -> None:
    findings = Search(setting_of(model, ResetMode.CLASSIC), 1, stop_at_first=True).run_all(limit=600)
    assert findings.first is not None
    assert findings.repeated >= min(MIN_REPEATED, findings.schedules + findings.equivalent)


@pytest.mark.slow
def test_server_resets_are_lost_when_the_broker_is_started_again() -> None:
    setting = setting_of("crash-broker", ResetMode.SERVER)
    assert Search(setting, 1, stop_at_first=True).run_all(limit=400).first is not None


@pytest.mark.slow
@pytest.mark.parametrize("model", SMALL)
def test_fenced_resets_are_kept_in_a_sample(model: str) -> None:
    findings = Search(setting_of(model, ResetMode.FENCED, late=1), 2).run_all(limit=200)
    assert findings.bad == 0
    assert findings.schedules > 50


@pytest.mark.slow
def test_fenced_resets_are_kept_in_random_schedules() -> None:
    findings = Search(setting_of("large", ResetMode.FENCED, late=2), 2).run_some(100, seed=3)
    assert (findings.schedules, findings.bad) == (100, 0)


@pytest.mark.slow
def test_classic_resets_are_lost_in_random_schedules() -> None:
    search = Search(setting_of("one-reset", ResetMode.CLASSIC, late=1), 1, stop_at_first=True)
    assert search.run_some(100, seed=3).first is not None


@pytest.mark.slow
@pytest.mark.parametrize("strategy", Strategy)
def test_the_seed_determines_the_schedules(strategy: Strategy) -> None:
    def run(seed: int) -> list[tuple[str, ...]]:
        jobs = [
            ScheduleJob(seed=f"{seed} {n}", strategy=strategy, changes=3, length=30, with_account=True)
            for n in range(4)
        ]
        with Pool(setting_of("one-reset", ResetMode.FENCED, late=1), 1) as pool:
            return [outcome.names for outcome in pool.run(jobs)]

    assert run(1) == run(1) != run(2)


def _end_by_signal() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(
    ("end", "why"),
    [(_end_by_signal, "by signal 9"), (partial(os._exit, 3), "with status 3")],
)
@pytest.mark.parametrize("written", ["nothing", "half"])
def test_a_child_that_ends_early_ends_the_search(
    monkeypatch: pytest.MonkeyPatch, end: Callable[[], None], why: str, written: str
) -> None:
    def send(results: int, value: object) -> None:
        if written == "half":
            # The length of a value that is longer than any message about the failure.
            os.write(results, (1 << 20).to_bytes(4, "big"))
        end()

    monkeypatch.setattr(paused_worlds, "send", send)
    why = f"a child process of the search was ended {why}" if written == "nothing" else "ended unexpectedly"
    with (
        Pool(setting_of("one-reset", ResetMode.FENCED), 1) as pool,
        pytest.raises(RaceError, match=why),
    ):
        pool.run([ScheduleJob(seed=f"1 {n}", changes=3, length=30) for n in range(2)])


def test_a_fork_that_fails_ends_the_workers_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []
    fork = os.fork

    def forks_twice() -> int:
        if len(begun) == 2:
            raise BlockingIOError("the limit of processes")
        begun.append(pid := fork())
        return pid

    monkeypatch.setattr(os, "fork", forks_twice)
    before = sorted(Path("/proc/self/fd").iterdir())
    with (
        pytest.raises(BlockingIOError, match="limit"),
        Pool(setting_of("one-reset", ResetMode.FENCED), 3),
    ):
        raise AssertionError("entered")
    assert sorted(Path("/proc/self/fd").iterdir()) == before
    for pid in begun:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.parametrize("mode", ResetMode)
def test_a_schedule_that_begins_in_a_paused_world_has_the_same_trace(mode: ResetMode) -> None:
    with Pool(setting_of("one-reset", mode, late=1), 1) as pool:
        jobs = [ScheduleJob(seed=f"1 {n}", changes=3, length=30, with_account=True) for n in range(6)]
        at_rest = pool.run(jobs)
        begun = [replace(job, begins=outcome.taken[:2]) for job, outcome in zip(jobs, at_rest, strict=True)]
        assert pool.run(begun) == at_rest


_DIGESTS = """
import sys
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.explore.model.models import find_model
from rewindmq.race.explore.search.job import ScheduleJob, Setting
from rewindmq.race.explore.search.pool import Pool
jobs = [ScheduleJob(seed=str(n), changes=3, length=30, with_account=True) for n in range(4)]
with Pool(Setting(find_model(sys.argv[1]), ResetMode.FENCED, Profile.EPOCH, 2), 1) as pool:
    for outcome in pool.run(jobs):
        print(outcome.error or outcome.account.digest)
"""


@pytest.mark.parametrize("model", ["one-reset", pytest.param("large", marks=pytest.mark.slow)])
def test_traces_are_byte_identical_in_another_interpreter(model: str) -> None:
    """Strings hash differently in another interpreter, so no trace may depend on the order of a set."""
    digests = [
        subprocess.run(
            [sys.executable, "-c", _DIGESTS, model],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for seed in ("1", "2")
    ]
    assert len(set(digests[0])) == 4
    assert digests[0] == digests[1]
