"""The catalogue as a table: a line per race, with its outcomes by mode and profile."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from rewindmq.protocol.profile import RELEASES, Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.scenario.catalogue import SCENARIOS
from rewindmq.race.scenario.scenario import Loss, Scenario

KEPT: Final = "·"
NO_RACE: Final = "-"
LEGEND: Final = f"""\
{KEPT} kept, {NO_RACE} no such race; digits are the outcomes: 23 is L2 and L3
  L0  acknowledged without effect, for a while or by design
  L1  redelivery starts at the target, but the stored offset is raised again
  L2  messages from the target on are never delivered again
  L3  two chains of pulls serve one queue, and every message comes twice
Details of a race: rewindmq race list ID"""

_COLUMNS: Final = (*RELEASES, Profile.EPOCH)
_GAP: Final = "  "
# Width of an outcome; the head of its column is a profile's name without "v", cut to this width.
_CELL: Final = 2
_GROUP: Final = len(_COLUMNS) * (_CELL + 1) - 1
_OUTCOMES: Final = len(ResetMode) * _GROUP + (len(ResetMode) - 1) * len(_GAP)
# Least width of a title; a shorter title cannot be understood.
_MIN_TITLE: Final = 20
# If titles would be narrower than this, the releases are left out.
_GOOD_TITLE: Final = 36


def render_table(width: int | None) -> list[str]:
    """Return the head, a line per race, and the outcomes of profiles without a column.

    Args:
        width: columns available; titles are cut, and releases left out, to fit. None shows everything.
    """
    titles = [known.title for known in SCENARIOS.values()]
    releases = max(len(_releases(known)) for known in SCENARIOS.values())
    name_width, title_width = max(map(len, SCENARIOS)), max(map(len, titles))
    if width is not None:
        left = width - name_width - _OUTCOMES - 2 * len(_GAP)
        if left - releases - len(_GAP) < _GOOD_TITLE:
            releases = 0
        else:
            left -= releases + len(_GAP)
        title_width = min(title_width, max(left, _MIN_TITLE))
    widths = (name_width, title_width, releases)
    lines = [
        _line(("", "", "", _GAP.join(f"{mode:<{_GROUP}}" for mode in ResetMode)), widths),
        _line(("race", "what happens", "releases", _GAP.join([_head()] * len(ResetMode))), widths),
    ]
    lines += [
        _line((known.id, known.title, _releases(known), _outcomes(known)), widths)
        for known in SCENARIOS.values()
    ]
    return [*lines, *_others()]


def _head() -> str:
    """Return the heads of the columns of one mode: ``42 49 53 ep``."""
    return " ".join(profile.removeprefix("v")[:_CELL] for profile in _COLUMNS)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    *shown, last = cells
    parts = [
        f"{_cut(cell, width):<{width}}{_GAP}" for cell, width in zip(shown, widths, strict=True) if width
    ]
    return ("".join(parts) + last).rstrip()


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1].rstrip(" ,;:") + "…"


def _releases(scenario: Scenario) -> str:
    """Return the releases without their conditions, which follow a semicolon or colon."""
    return scenario.versions.replace(":", ";").partition(";")[0]


def _outcomes(scenario: Scenario) -> str:
    return _GAP.join(
        " ".join(f"{_cell(scenario.cases.get((profile, mode))):<{_CELL}}" for profile in _COLUMNS)
        for mode in ResetMode
    )


def _cell(losses: Iterable[Loss] | None) -> str:
    if losses is None:
        return NO_RACE
    return "".join(loss.removeprefix("L") for loss in sorted(losses)) or KEPT


def _others() -> list[str]:
    """Return a line per race and profile without a column: ``SEED with unguarded: classic 1, fenced 1``."""
    lines = []
    for scenario in SCENARIOS.values():
        for profile in Profile:
            outcomes = [
                f"{mode} {_cell(scenario.cases[profile, mode])}"
                for mode in ResetMode
                if (profile, mode) in scenario.cases
            ]
            if outcomes and profile not in _COLUMNS:
                lines.append(f"{scenario.id} with {profile}: {', '.join(outcomes)}")
    return lines
