"""``rewindmq race list``: the catalogue."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rewindmq.race.scenario.scenario import Loss, Scenario

EPILOG: Final = """\
outcomes:
  kept  nothing is lost
  L0    acknowledged without effect, for a while or by design
  L1    redelivery starts at the target, but the stored offset is pushed up again
  L2    messages from the target on are never delivered again
  L3    two chains of pulls serve one queue, and every message comes twice

example:
  rewindmq race list --json
"""
_MAX_WIDTH: Final = 120
_MIN_WIDTH: Final = 60


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("--json", action="store_true", help="one JSON array")


def run(arguments: argparse.Namespace) -> int:
    """Print it."""
    import json
    import shutil

    from rewindmq.race.scenario.catalogue import SCENARIOS, UNPLAYABLE

    if arguments.json:
        rows = [_row(scenario) for scenario in SCENARIOS.values()]
        rows += [
            {"id": race.id, "title": race.title, "section": race.section, "unplayable": race.reason}
            for race in UNPLAYABLE
        ]
        print(json.dumps(rows, indent=2))
        return 0
    width = max(_MIN_WIDTH, min(_MAX_WIDTH, shutil.get_terminal_size().columns))
    margin = 2 + max(map(len, (*SCENARIOS, *(race.id for race in UNPLAYABLE))))
    for scenario in SCENARIOS.values():
        print(_paragraph(scenario.title, margin, width, scenario.id))
        print(_paragraph(f"{scenario.section}; in {scenario.versions}", margin, width))
        print(_paragraph(_outcomes(scenario), margin, width) + "\n")
    for race in UNPLAYABLE:
        print(_paragraph(race.title, margin, width, race.id))
        print(_paragraph(f"{race.section}; cannot be played: {race.reason}", margin, width) + "\n")
    return 0


def outcome_text(losses: Iterable[Loss]) -> str:
    """``L1 L3``, or ``kept``."""
    return " ".join(sorted(losses)) or "kept"


def _paragraph(text: str, margin: int, width: int, name: str = "") -> str:
    import textwrap

    return textwrap.fill(
        text, width, initial_indent=f"{name:<{margin}}", subsequent_indent=" " * (margin + 2)
    )


def _outcomes(scenario: Scenario) -> str:
    """``classic: L1 v42 v49 v53, kept epoch; fenced: kept`` - profiles only where they differ."""
    from rewindmq.protocol.reset_mode import ResetMode

    texts = []
    for mode in ResetMode:
        profiles: dict[str, list[str]] = {}
        for (profile, its_mode), losses in scenario.cases.items():
            if its_mode is mode:
                profiles.setdefault(outcome_text(losses), []).append(profile)
        if len(profiles) == 1:
            ((outcome, _),) = profiles.items()
            texts.append(f"{mode}: {outcome}")
        elif profiles:
            parts = (f"{outcome} with {' '.join(names)}" for outcome, names in profiles.items())
            texts.append(f"{mode}: {', '.join(parts)}")
    return "; ".join(texts)


def _row(scenario: Scenario) -> dict[str, Any]:
    return {
        "id": scenario.id,
        "title": scenario.title,
        "section": scenario.section,
        "versions": scenario.versions,
        "closedBy": scenario.closed_by,
        "cases": [
            {"profile": profile, "mode": mode, "outcome": sorted(losses)}
            for (profile, mode), losses in scenario.cases.items()
        ],
    }
