"""The race laboratory: rates of simulation and exploration, and times of races enforced on real sockets."""

from __future__ import annotations

import time

from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.explore.model.models import DEFAULT_PROFILES, find_model
from rewindmq.race.explore.search.job import Setting
from rewindmq.race.explore.search.search import Search
from rewindmq.race.play.run import HELD_TIME_SCALE, Plan, Staging, play_simulated
from rewindmq.race.play.run_many import play_many
from rewindmq.race.scenario.catalogue import SCENARIOS, find_scenario
from rewindmq.race.scenario.choose import choose_case


def simulated_rate(race_id: str, runs: int) -> float:
    """Return runs per second of one race under virtual time, on one core."""
    plan = Plan(race_id, *choose_case(find_scenario(race_id), None, None))
    started = time.perf_counter()
    for seed in range(runs):
        play_simulated(plan, seed)
    return runs / (time.perf_counter() - started)


def explored_rates(mode: ResetMode, schedules: int, seed: int) -> tuple[float, float]:
    """Search the model ``one-reset`` at random in one worker process.

    Returns:
        Schedules drawn per second, and different schedules run per second.
    """
    setting = Setting(find_model("one-reset"), mode, DEFAULT_PROFILES[mode], 1)
    findings = Search(setting, 1).run_some(schedules, seed)
    return findings.rate, findings.run_rate


def held_seconds() -> dict[str, float]:
    """Return, for each race, the seconds of one held run, including start and end of its processes.

    Raises:
        RuntimeError: a race did not end as documented.
    """
    seconds = {}
    for race_id, scenario in SCENARIOS.items():
        case: tuple[Profile, ResetMode] = choose_case(scenario, None, None)
        plan = Plan(race_id, *case, Staging.HELD, HELD_TIME_SCALE)
        (outcome,) = play_many(plan, range(1), 1, lambda outcome: None)
        if not outcome.is_documented:
            raise RuntimeError(f"{race_id} did not end as documented")
        seconds[race_id] = outcome.seconds
    return seconds
