"""Every scenario, with every client, against our cluster and against the real one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from tools.interop.clients import Client
from tools.interop.differences import EXPLAINED, at, differing
from tools.interop.results import EXPLAINED as EXPLAINED_RESULT
from tools.interop.runs import REFERENCE, Result, Runs, pairs
from tools.interop.scenarios import SCENARIOS

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    runs = Runs(tmp_path_factory.mktemp("interop"))
    yield runs
    runs.close()


def _result(runs: Runs, client: Client, server: str, feature: str) -> Result:
    result = runs.run(client, server).results[feature]
    if result.lacking:
        pytest.skip(f"the library has no {', '.join(sorted(result.lacking))}")
    if result.error is not None:
        raise result.error
    return result


@pytest.mark.parametrize("feature", SCENARIOS)
@pytest.mark.parametrize(
    ("client", "server"), [pytest.param(c, s, id=f"{c.name}-at-{s}") for c, s in pairs()]
)
def test_scenario(
    runs: Runs,
    client: Client,
    server: str,
    feature: str,
    record_property: Callable[[str, object], None],
) -> None:
    """The promises hold, and nothing else differs from what the real cluster does."""
    _result(runs, client, server, feature)
    if server not in REFERENCE:
        return
    different, reasons = _compare(runs, client, server, feature)
    if different:
        # Two cores that start JVMs keep no client's bounds, nor a server's.
        runs.play_alone(client, server, feature, _text(different))
        different, reasons = _compare(runs, client, server, feature)
    for reason in reasons:
        record_property(EXPLAINED_RESULT, reason)
    assert not different, _text(different)


def _compare(
    runs: Runs, client: Client, server: str, feature: str
) -> tuple[dict[str, tuple[Any, Any]], list[str]]:
    """What differs and is not explained, and the explanations that were needed."""
    outcome = _result(runs, client, server, feature).outcome
    expected = _result(runs, client, REFERENCE[server], feature).outcome
    different: dict[str, tuple[Any, Any]] = {}
    reasons = []
    for path in differing(outcome, expected):
        explained = EXPLAINED.get((server, feature, path))
        pair = at(outcome, path), at(expected, path)
        if explained is not None and explained.covers(*pair):
            reasons.append(explained.why)
        else:
            different[": ".join(path)] = pair
    return different, reasons


def _text(different: Mapping[str, tuple[Any, Any]]) -> str:
    return f"ours, theirs: {json.dumps(different, default=str)}"


def test_every_explanation_is_needed(runs: Runs) -> None:
    """What no client sees any longer is explained no longer."""
    needed = set()
    for client, server in pairs():
        if (reference := REFERENCE.get(server)) is None:
            continue
        theirs = runs.run(client, reference).results
        for feature, result in runs.run(client, server).results.items():
            if result.outcome is not None and theirs[feature].outcome is not None:
                paths = differing(result.outcome, theirs[feature].outcome)
                needed |= {(server, feature, path) for path in paths}
    assert EXPLAINED.keys() <= needed, EXPLAINED.keys() - needed
