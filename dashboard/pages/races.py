"""The race laboratory: the catalogue of races, and one simulated run with its swim lanes and verdict."""

from __future__ import annotations

import asyncio
from typing import Final

from markupsafe import Markup
from starlette.responses import Response

from rewindmq.dashboard.races.race_run import RaceCase, RaceRun
from rewindmq.dashboard.races.race_runs import BusyError, NotPlayedError
from rewindmq.dashboard.web.numbers import number_below
from rewindmq.dashboard.web.page import Page, Visit
from rewindmq.race.errors import RaceError
from rewindmq.race.report.meta import LOSS_TEXTS
from rewindmq.race.scenario.catalogue import SCENARIOS, find_scenario
from rewindmq.race.scenario.choose import choose_case
from rewindmq.race.scenario.scenario import Case, Loss, Scenario

_SEEDS: Final = 2**31
_KEPT: Final = "kept"


async def show_list(visit: Visit) -> Response:
    """Show the races that the laboratory knows."""
    rows = [(race, _outcomes(race)) for race in SCENARIOS.values()]
    return visit.render("races.html", title="Races", rows=rows, losses=LOSS_TEXTS)


async def show_one(visit: Visit) -> Response:
    """Show a race; with the query ``seed``, play it, unless the visitor leaves before its end."""
    try:
        race = find_scenario(visit.path("id"))
    except RaceError as error:
        return visit.render("race.html", 404, title="Races", race=None, problem=f"{_capital(str(error))}.")
    cases = {f"{profile}/{mode}": (profile, mode) for profile, mode in race.cases}
    asked = visit.query("case")
    case = cases.get(asked) or choose_case(race, None, None)
    seed = number_below(visit.query("seed", "1"), _SEEDS)
    run, problem, status = None, None, 200
    if asked and asked not in cases:
        problem, status = "This race has no such case: choose one of the list.", 404
    elif seed is None:
        problem, status = f"A seed is a number from 0 to {_SEEDS - 1:,}.", 400
    elif "seed" in visit.request.query_params:
        found = await _played(visit, RaceCase(race.id, *case, seed))
        if found is None:
            return Response(status_code=400)
        run, problem, status = found
    return visit.render(
        "race.html",
        status,
        title=race.id,
        race=race,
        cases={name: _outcome(race.cases[each]) for name, each in cases.items()},
        chosen=f"{case[0]}/{case[1]}",
        documented=_outcome(race.cases[case]),
        seed=1 if seed is None else seed,
        run=run,
        # The worker's drawing has every text escaped.
        drawing=Markup(run.drawing) if run else None,  # noqa: S704
        losses=LOSS_TEXTS,
        problem=problem,
    )


async def _played(visit: Visit, case: RaceCase) -> tuple[RaceRun | None, str | None, int] | None:
    """Return the run, or why there is none, and the status; None: the visitor has left."""
    playing = asyncio.ensure_future(visit.races.play(case))
    leaving = asyncio.ensure_future(_until_left(visit))
    try:
        await asyncio.wait((playing, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not playing.done():
            return None
        return playing.result(), None, 200
    except BusyError as error:
        return None, f"One race is played at a time, and {error}: load this page again in a moment.", 503
    except NotPlayedError as error:
        return None, f"The race was not played: {error}.", 500
    finally:
        leaving.cancel()
        playing.cancel()
        # The run's process has ended when this page has.
        await asyncio.wait((playing, leaving))


async def _until_left(visit: Visit) -> None:
    while (await visit.request.receive())["type"] != "http.disconnect":
        pass


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _outcome(losses: frozenset[Loss]) -> str:
    return " ".join(sorted(losses)) or _KEPT


def _outcomes(race: Scenario) -> dict[str, str]:
    """Return the documented outcomes by mode: ``L2+L3``, or ``L1, kept`` if they differ by profile."""
    found: dict[str, set[str]] = {}
    case: Case
    for case, losses in race.cases.items():
        found.setdefault(str(case[1]), set()).add("+".join(sorted(losses)) or _KEPT)
    return {mode: ", ".join(sorted(outcomes)) for mode, outcomes in found.items()}


PAGES = (
    Page("/races", show_list, "Races", navigation="Races", place=5),
    Page("/races/{id}", show_one, "Race"),
)
