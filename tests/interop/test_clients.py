"""Every scenario, with every client, at a RewindMQ cluster and at a RocketMQ cluster."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.interop.asked import asked_for
from tools.interop.differences import EXPLAINED, at, differing
from tools.interop.plan import Play, plays
from tools.interop.results import EXPLAINED as EXPLAINED_RESULT
from tools.interop.runs import Runs
from tools.interop.scenarios.scenario import Outcome


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """The plays that the session's tests ask for."""
    runs = Runs(tmp_path_factory.mktemp("interop"), asked_for(request, Play))
    yield runs
    runs.close()


def _outcome(runs: Runs, play: Play) -> Outcome:
    result = runs.result(play)
    if result.lacking:
        pytest.skip(f"the library has no {', '.join(sorted(result.lacking))}")
    if result.error is not None:
        raise result.error
    assert result.outcome is not None
    return result.outcome


_NOT_CHOSEN = pytest.mark.interop(full_only="CI has each pair: tools/interop/plan.py")


@pytest.mark.parametrize(
    "play",
    [pytest.param(play, id=str(play), marks=() if play.is_chosen else _NOT_CHOSEN) for play in plays()],
)
def test_scenario(runs: Runs, play: Play, record_property: Callable[[str, object], None]) -> None:
    """The promises hold, and the outcome is that of RocketMQ's cluster."""
    outcome = _outcome(runs, play)
    record_property("seconds", runs.result(play).seconds)
    if play.reference is None:
        return
    expected = _outcome(runs, play.reference)
    different: dict[str, tuple[Any, Any]] = {}
    for path in differing(outcome, expected):
        explained = EXPLAINED.get((play.server, play.feature, path))
        pair = at(outcome, path), at(expected, path)
        if explained is not None and explained.covers(*pair):
            record_property(EXPLAINED_RESULT, explained.why)
        else:
            different[": ".join(path)] = pair
    assert not different, f"RewindMQ, RocketMQ: {json.dumps(different, default=str)}"


def test_every_explanation_is_needed(runs: Runs) -> None:
    """An explanation without a difference must be removed."""
    needed, played = set(), set()
    for play, result in runs.results().items():
        rocketmq = None if play.reference is None else runs.result(play.reference).outcome
        if result.outcome is not None and rocketmq is not None:
            played.add((play.server, play.feature))
            paths = differing(result.outcome, rocketmq)
            needed |= {(play.server, play.feature, path) for path in paths}
    unneeded = {key for key in EXPLAINED if key[:2] in played} - needed
    assert not unneeded
