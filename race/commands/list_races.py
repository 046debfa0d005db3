"""``rewindmq race list``: print the catalogue as a table, or the details of some races."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rewindmq.race.scenario.scenario import Loss, Scenario

EPILOG: Final = """\
The table fits the terminal's width; in a file or a pipe it is complete.

examples:
  rewindmq race list              a line per race
  rewindmq race list R1 R4        details of two races: releases, outcomes, remedies
  rewindmq race list --json
"""
_MAX_WIDTH: Final = 120
_MIN_WIDTH: Final = 60


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("ids", nargs="*", metavar="ID", help="print the details of these races")
    parser.add_argument("--json", action="store_true", help="print the catalogue as one JSON array")


def run(arguments: argparse.Namespace) -> int:
    """Print the catalogue or the details of some races; returns the exit code.

    Raises:
        RaceError: there is no such race.
    """
    from rewindmq.race.commands.race_table import LEGEND, render_table
    from rewindmq.race.scenario.catalogue import SCENARIOS, find_scenario

    chosen = [find_scenario(name) for name in arguments.ids]
    if arguments.json:
        print(json.dumps([_row(race) for race in chosen or SCENARIOS.values()], indent=2))
    elif chosen:
        print("\n\n".join(_details(race) for race in chosen))
    else:
        print("\n".join([*render_table(_table_width()), "", LEGEND]))
    return 0


def outcome_text(losses: Iterable[Loss]) -> str:
    """Return an outcome as text: ``L1 L3``, or ``kept``."""
    return " ".join(sorted(losses)) or "kept"


def _table_width() -> int | None:
    """Return the terminal's width in columns; None if the output is not a terminal."""
    if sys.stdout.isatty() or "COLUMNS" in os.environ:
        return shutil.get_terminal_size().columns
    return None


def _details(race: Scenario) -> str:
    facts = [f"{race.id}: {race.title}", f"releases: {race.versions}", *_outcomes(race)]
    facts += [
        f"closed by: {race.closed_by}",
        f"single remedies: {_remedies(race)}",
        f"more: docs/race/{race.id}.md",
    ]
    return "\n".join(_paragraph(fact, "  " if number else "") for number, fact in enumerate(facts))


def _paragraph(text: str, margin: str) -> str:
    import textwrap

    width = max(_MIN_WIDTH, min(_MAX_WIDTH, shutil.get_terminal_size().columns))
    return textwrap.fill(text, width, initial_indent=margin, subsequent_indent=margin + "  ")


def _outcomes(scenario: Scenario) -> list[str]:
    """Return a line per mode, such as ``classic: L1 with v42 v49 v53, kept with epoch``.

    A line names profiles only if their outcomes differ.
    """
    from rewindmq.protocol.reset_mode import ResetMode

    texts = []
    for mode in ResetMode:
        profiles: dict[str, list[str]] = {}
        for (profile, its_mode), losses in scenario.cases.items():
            if its_mode is mode:
                profiles.setdefault(outcome_text(losses), []).append(profile)
        parts = [
            outcome if len(profiles) == 1 else f"{outcome} with {' '.join(names)}"
            for outcome, names in profiles.items()
        ]
        texts.append(f"{mode}: {', '.join(parts) or 'no such race'}")
    return texts


def _remedies(race: Scenario) -> str:
    """Return the outcomes of `race run --remedy`: ``F1 kept, F2 L1 with v49 in classic mode; ...``."""
    by_case: dict[str, list[str]] = {}
    for row in _remedy_rows(race):
        case = f"{row['profile']} in {row['mode']} mode"
        by_case.setdefault(case, []).append(f"{row['remedy']} {outcome_text(row['outcome'])}")
    return "; ".join(f"{', '.join(outcomes)} with {case}" for case, outcomes in by_case.items())


def _remedy_rows(race: Scenario) -> list[dict[str, Any]]:
    """Return a row for each single remedy that the race can be played with."""
    from rewindmq.race.scenario.choose import remedy_cases

    return [
        {
            "remedy": remedy,
            "profile": profile,
            "mode": mode,
            "outcome": sorted(race.documented(profile, mode, remedy)),
        }
        for remedy, (profile, mode) in remedy_cases(race).items()
    ]


def _row(race: Scenario) -> dict[str, Any]:
    return {
        "id": race.id,
        "title": race.title,
        "section": race.section,
        "versions": race.versions,
        "closedBy": race.closed_by,
        "cases": [
            {"profile": profile, "mode": mode, "outcome": sorted(losses)}
            for (profile, mode), losses in race.cases.items()
        ],
        "remedies": _remedy_rows(race),
    }
