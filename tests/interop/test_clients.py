"""Every scenario, with every client, against our cluster and against the real one."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from interop.clients import Client
from interop.differences import EXPLAINED
from interop.runs import REFERENCE, Result, Runs, pairs
from interop.scenarios import SCENARIOS

pytestmark = pytest.mark.interop


@pytest.fixture(scope="session")
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
def test_scenario(runs: Runs, client: Client, server: str, feature: str) -> None:
    """The promises hold, and nothing else differs from what the real cluster does."""
    outcome = _result(runs, client, server, feature).outcome
    if (reference := REFERENCE.get(server)) is None:
        return
    expected = _result(runs, client, reference, feature).outcome
    assert outcome is not None
    assert expected is not None
    different = {
        name: (outcome.get(name), expected.get(name))
        for name in outcome | expected
        if outcome.get(name) != expected.get(name) and (feature, name) not in EXPLAINED
    }
    assert not different, f"ours, theirs: {json.dumps(different, indent=1, default=str)}"
