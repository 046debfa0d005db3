"""The page of each race agrees with its scenario."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path
from typing import Final

import pytest

from rewindmq.client.core.remedy import Remedy
from rewindmq.protocol.profile import RELEASES, Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.commands import run_race
from rewindmq.race.commands.list_races import outcome_text
from rewindmq.race.scenario.catalogue import SCENARIOS
from rewindmq.race.scenario.choose import remedy_cases
from rewindmq.race.scenario.scenario import KEPT, Scenario

PAGES: Final = Path(__file__).resolve().parents[2] / "docs" / "race"
_LINK: Final = re.compile(r"\]\(([^)#\s]+)\)")
_RUN: Final = re.compile(r"^\$ rewindmq race run (.*)$", re.MULTILINE)


def _row(page: str, first: str) -> list[str]:
    """Return the cells of a table row after the first one."""
    line = next(line for line in page.splitlines() if line.startswith(f"| {first} |"))
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=lambda scenario: str(scenario.id))
def test_a_page_shows_the_documented_outcomes_and_commands_that_parse(scenario: Scenario) -> None:
    page = (PAGES / f"{scenario.id}.md").read_text()
    modes = _row(page, "profile")
    assert modes == [mode for mode in ResetMode if any(mode is known for _, known in scenario.cases)]
    shown = {
        (profile, ResetMode(mode)): cell
        for profile in Profile
        if any(profile is known for known, _ in scenario.cases)
        for mode, cell in zip(modes, _row(page, f"`{profile}`"), strict=True)
        if cell != "–"
    }
    assert shown == {case: outcome_text(losses) for case, losses in scenario.cases.items()}
    parser = argparse.ArgumentParser()
    run_race.add_arguments(parser)
    commands = _RUN.findall(page)
    assert commands
    for command in commands:
        arguments = parser.parse_args(shlex.split(command))
        mode = arguments.mode or next(iter(scenario.cases))[1]
        profile = arguments.profile or next(profile for profile, known in scenario.cases if known == mode)
        assert (profile, mode) in scenario.cases, command


def test_the_index_names_every_race() -> None:
    index = (PAGES / "catalogue.md").read_text()
    assert set(_LINK.findall(index)) >= {f"{scenario_id}.md" for scenario_id in SCENARIOS}


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=lambda scenario: str(scenario.id))
def test_the_index_shows_the_outcome_of_a_race_with_each_single_remedy(scenario: Scenario) -> None:
    table = (PAGES / "catalogue.md").read_text().partition("## Single remedies")[2]
    played, without, *outcomes = _row(table, f"[{scenario.id}]({scenario.id}.md)")
    shown = dict(zip(_row(table, "race")[2:], outcomes, strict=True))
    cases = remedy_cases(scenario)
    case = cases[Remedy.F1]
    assert (played, without) == (", ".join(case), outcome_text(scenario.cases[case]))
    assert {remedy: text for remedy, text in shown.items() if text != "–"} == {
        remedy: outcome_text(scenario.documented(*cases[remedy], remedy)) for remedy in cases
    }


def test_the_readme_counts_the_races_that_lose_a_reset_of_a_release() -> None:
    """A reset is lost in L1 and L2; in L0 it is delayed, and in L3 messages come twice."""
    lost = {
        mode: sum(
            any(
                known is mode and profile in RELEASES and {"L1", "L2"} & losses
                for (profile, known), losses in scenario.cases.items()
            )
            for scenario in SCENARIOS.values()
        )
        for mode in ResetMode
    }
    readme = (PAGES.parents[1] / "README.md").read_text()
    counts = (
        f"in {lost[ResetMode.CLASSIC]} of the [catalogue](docs/race/catalogue.md)'s {len(SCENARIOS)} races"
    )
    assert _row(readme, "`classic`")[-1] == counts
    assert _row(readme, "`server`")[-1] == f"in {lost[ResetMode.SERVER]} of them"


def test_the_index_names_what_fenced_mode_does_not_promise_to_older_clients() -> None:
    lost = {
        scenario.id
        for scenario in SCENARIOS.values()
        for (profile, mode), losses in scenario.cases.items()
        if mode is ResetMode.FENCED and profile in RELEASES and losses != KEPT
    }
    assert lost == {"STALL"}
    promise = (PAGES / "catalogue.md").read_text().partition("## What fenced mode promises")[2]
    assert _row(promise, "[STALL](STALL.md)")[0].startswith("L1")
    assert _row(promise, "all others") == ["kept"]
