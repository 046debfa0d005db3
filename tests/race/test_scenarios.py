"""Every race of the catalogue comes out as documented."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from rewindmq.client.core.remedy import Remedy
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.errors import RaceError
from rewindmq.race.history import Lab
from rewindmq.race.play.run import HELD_TIME_SCALE, Plan, PlayOutcome, Staging, play_for_real, play_simulated
from rewindmq.race.play.run_many import default_jobs, play_many, run_until_stopped
from rewindmq.race.scenario.catalogue import SCENARIOS, find_scenario
from rewindmq.race.scenario.choose import choose_case, remedy_cases
from rewindmq.race.scenario.scenario import KEPT

CASES = [
    pytest.param(scenario.id, profile, mode, id=f"{scenario.id}-{profile}-{mode}")
    for scenario in SCENARIOS.values()
    for profile, mode in scenario.cases
]


def one_of(cases: Sequence[ParameterSet], number: int) -> list[ParameterSet]:
    """Leave one case of a race to the default group, in turn, and mark the others for CI.

    Args:
        number: of the race in the catalogue.
    """
    kept = number % len(cases)
    return [
        case if place == kept else pytest.param(*case.values, id=case.id, marks=pytest.mark.slow)
        for place, case in enumerate(cases)
    ]


# The cases that `race run ID --mode M` plays. CI plays all other cases with the computing tests.
ONE_OF_EACH_MODE = [
    case
    for number, scenario in enumerate(SCENARIOS.values())
    for case in one_of(
        [
            pytest.param(scenario.id, *choose_case(scenario, None, mode), id=f"{scenario.id}-{mode}")
            for mode in dict.fromkeys(mode for _, mode in scenario.cases)
        ],
        number,
    )
]
# The cases that `race run ID` plays by default.
SHOWN = [
    pytest.param(scenario.id, *choose_case(scenario, None, None), id=scenario.id)
    for scenario in SCENARIOS.values()
]

# Time scale of held races. At 0.01, waiting for a processor of a busy machine takes seconds of race time.
TIME_SCALE = 0.1
AT_A_TIME = 6


def _say(outcome: PlayOutcome) -> str:
    losses = ", ".join(sorted(outcome.verdict.losses)) or "kept"
    reasons = "; ".join(violation.text for violation in outcome.verdict.violations)
    return f"{outcome.number}: {outcome.error or losses} ({reasons})"


def _undocumented(outcomes: list[PlayOutcome]) -> list[str]:
    return [_say(outcome) for outcome in outcomes if not outcome.is_documented]


@pytest.mark.parametrize(("scenario_id", "profile", "mode"), ONE_OF_EACH_MODE)
def test_a_case_of_each_mode_comes_out_as_documented(
    scenario_id: str, profile: Profile, mode: ResetMode
) -> None:
    plan = Plan(scenario_id, profile, mode)
    assert _undocumented([play_simulated(plan, 1)]) == []


@pytest.mark.parametrize(("scenario_id", "profile", "mode"), CASES)
@pytest.mark.slow
def test_every_case_comes_out_as_documented(
    scenario_id: str, profile: Profile, mode: ResetMode, full: bool
) -> None:
    """Play twenty seeds; without ``--full``, one."""
    plan = Plan(scenario_id, profile, mode)
    seeds = range(100, 120 if full else 101)
    assert _undocumented([play_simulated(plan, seed) for seed in seeds]) == []


@pytest.mark.parametrize(("scenario_id", "profile", "mode"), SHOWN)
@pytest.mark.slow
def test_1_000_of_1_000_seeds_come_out_as_documented(
    scenario_id: str, profile: Profile, mode: ResetMode, full: bool
) -> None:
    """Play 1,000 seeds; without ``--full``, fifty in one process, as starting more would take longer."""
    plan = Plan(scenario_id, profile, mode)
    count = 1000 if full else 50
    jobs = default_jobs(plan, count) if full else 1
    outcomes = play_many(plan, range(count), jobs, lambda outcome: None)
    assert len(outcomes) == count
    assert _undocumented(outcomes) == []


def _held_plan(scenario_id: str) -> Plan:
    profile, mode = choose_case(SCENARIOS[scenario_id], None, None)
    return Plan(scenario_id, profile, mode, Staging.HELD, TIME_SCALE)


def _play_held(plans: Sequence[Plan]) -> list[PlayOutcome]:
    """Play several at a time, as they mostly wait."""

    async def main() -> list[PlayOutcome]:
        permits = asyncio.Semaphore(AT_A_TIME)

        async def play(plan: Plan, number: int) -> PlayOutcome:
            async with permits:
                return await play_for_real(plan, number)

        return await asyncio.gather(*(play(plan, number) for number, plan in enumerate(plans)))

    return run_until_stopped(main)


@pytest.fixture(scope="module")
def held_once(full: bool) -> dict[str, PlayOutcome]:
    """Each race, played held once; empty with ``--full``, where each test plays its own."""
    plans = [] if full else [_held_plan(scenario_id) for scenario_id in SCENARIOS]
    return {outcome.plan.scenario_id: outcome for outcome in _play_held(plans)}


@pytest.mark.parametrize("scenario_id", SCENARIOS)
@pytest.mark.slow
def test_20_of_20_held_runs_come_out_as_documented(
    scenario_id: str, full: bool, held_once: dict[str, PlayOutcome]
) -> None:
    """Play twenty runs; without ``--full``, one."""
    outcomes = _play_held([_held_plan(scenario_id)] * 20) if full else [held_once[scenario_id]]
    assert len(outcomes) == (20 if full else 1)
    assert _undocumented(outcomes) == []


REMEDIES = [
    case
    for number, scenario in enumerate(SCENARIOS.values())
    for case in one_of(
        [
            pytest.param(scenario.id, remedy, *case, id=f"{scenario.id}-{remedy}")
            for remedy, case in remedy_cases(scenario).items()
        ],
        number,
    )
]


@pytest.mark.parametrize(("scenario_id", "remedy", "profile", "mode"), REMEDIES)
def test_every_single_remedy_closes_the_races_that_it_is_documented_to_close(
    scenario_id: str, remedy: Remedy, profile: Profile, mode: ResetMode
) -> None:
    assert _undocumented([play_simulated(Plan(scenario_id, profile, mode, remedy=remedy), 1)]) == []


@pytest.mark.parametrize("remedy", Remedy)
@pytest.mark.parametrize("scenario_id", SCENARIOS)
@pytest.mark.slow(full_only="CI plays one case of each remedy")
def test_every_single_remedy_has_its_documented_outcome_in_every_case_with_more_seeds(
    scenario_id: str, remedy: Remedy
) -> None:
    plans = [Plan(scenario_id, *case, remedy=remedy) for case in SCENARIOS[scenario_id].cases]
    assert _undocumented([play_simulated(plan, seed) for plan in plans for seed in (1, 2, 3)]) == []


@pytest.mark.parametrize("scenario_id", ["R1", "R3a"])
@pytest.mark.slow(full_only="the default group plays it simulated")
def test_a_single_remedy_closes_a_race_on_real_sockets(scenario_id: str) -> None:
    plan = Plan(scenario_id, Profile.V49, ResetMode.CLASSIC, Staging.HELD, HELD_TIME_SCALE, remedy=Remedy.F3)
    assert _undocumented(play_many(plan, range(1), 1, lambda outcome: None)) == []


@pytest.mark.slow
def test_R1_held_does_not_hold_the_response_that_tells_of_a_server_reset() -> None:
    plan = Plan("R1", Profile.V53, ResetMode.SERVER, Staging.HELD, HELD_TIME_SCALE)
    (outcome,) = play_many(plan, range(1), 1, lambda outcome: None)
    assert outcome.error is None
    # The response to the pull in flight tells of the reset. The outcome is not judged, because a timer may
    # always fire in between (S1).
    assert not [event for event in outcome.history if event.kind is Lab.FRAME_HELD]


def test_a_broadcasting_consumer_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    play_simulated(Plan("BROADCAST", Profile.V49, ResetMode.CLASSIC), 1)
    assert list(tmp_path.iterdir()) == []


def test_E28_with_epoch_aware_clients_no_fenced_reset_is_lost() -> None:
    fenced = (Profile.EPOCH, ResetMode.FENCED)
    outcomes = {scenario.id: scenario.cases.get(fenced) for scenario in SCENARIOS.values()}
    # A broadcasting consumer stores its own offsets, so the broker has nothing to fence.
    assert outcomes.pop("BROADCAST") is None
    assert set(outcomes.values()) == {KEPT}


def test_the_catalogue_has_every_race_of_the_reference() -> None:
    named = {"SEED", "STALL", "ERR14", "PERSIST", "UNASSIGNED", "PULL", "BROADCAST", "ORDERLY"}
    numbered = {"R1", "R2", "R3a", "R3b", "R4", "R5", "R6", "R6b", "R7", "R7b", "R8", "R8-KILL"}
    numbered |= {"R9", "R9b", "R10", "R11", *(f"S{number}" for number in range(1, 8))}
    assert SCENARIOS.keys() >= named | numbered


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("R99", "there is no race 'R99'; did you mean"),
        ("nonsense", "there is no race 'nonsense'; `rewindmq race list` names them all"),
    ],
)
def test_an_unknown_race_is_refused_in_one_line(name: str, text: str) -> None:
    with pytest.raises(RaceError) as caught:
        find_scenario(name)
    assert str(caught.value).startswith(text)
    assert "\n" not in str(caught.value)


def test_ids_are_found_in_any_case() -> None:
    assert find_scenario("r8-kill") is SCENARIOS["R8-KILL"]
    assert find_scenario("R3A") is SCENARIOS["R3a"]


@pytest.mark.parametrize(("profile", "mode"), [(Profile.V49, "classic"), (Profile.V53, "server")])
def test_a_profile_alone_is_played_in_the_mode_of_its_release(profile: Profile, mode: str) -> None:
    assert choose_case(SCENARIOS["SEED"], profile, None) == (profile, mode)
    # S7 needs a mark of a server-side reset, which no classic reset leaves.
    assert choose_case(SCENARIOS["S7"], profile, None) == (profile, "server")
