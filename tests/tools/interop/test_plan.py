"""The part of the client tests that CI runs leaves out no pair of client, scenario and release.

A full run of the races for real includes every cell of their table.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.interop import test_races_for_real as races
from tools.interop.clients import CLIENTS
from tools.interop.plan import MEETS, REFERENCE, plays, with_references
from tools.interop.races.cells import ALL, DEFAULT
from tools.interop.scenarios import SCENARIOS

# CI runs no client whose driver takes long to build.
_QUICK = [client.name for client in CLIENTS if not client.is_slow_to_build]
_ALL = [play for play in plays() if play.unplayed is None and play.client.name in _QUICK]
_CHOSEN = [play for play in plays() if play.unplayed is None and play.is_chosen]


def test_every_client_runs_every_scenario_at_one_release_and_its_profile() -> None:
    for client in _QUICK:
        for feature in SCENARIOS:
            chosen = [play for play in _CHOSEN if (play.client.name, play.feature) == (client, feature)]
            (rewindmq,) = [play for play in chosen if play.reference is not None]
            assert {play.server for play in chosen} == {rewindmq.server, REFERENCE[rewindmq.server]}


def test_every_scenario_runs_at_every_cluster() -> None:
    assert {(play.feature, play.server) for play in _CHOSEN} == {(p.feature, p.server) for p in _ALL}


def test_every_client_runs_at_all_its_clusters() -> None:
    assert {(play.client, play.server) for play in _CHOSEN} == {(p.client, p.server) for p in _ALL}


def test_every_chosen_play_is_chosen_with_its_reference() -> None:
    assert set(with_references(_CHOSEN)) == set(_CHOSEN)


def test_ci_runs_no_client_whose_driver_takes_long_to_build() -> None:
    assert {play.client.name for play in _CHOSEN} == {*_QUICK}
    assert {play.client.name for play in plays()} == {*MEETS}


def _races(*, is_full: bool) -> dict[str, set[str]]:
    """Return the markers of each race, by the test's parameter."""
    found: dict[str, set[str]] = {}

    def parametrize(name: str, parameters: list[Any]) -> None:
        found.update({one.id: {mark.name for mark in one.marks} for one in parameters})

    config = SimpleNamespace(getoption=lambda name: is_full)
    metafunc = SimpleNamespace(fixturenames=("cell",), config=config, parametrize=parametrize)
    races.pytest_generate_tests(cast("pytest.Metafunc", metafunc))
    return found


def test_a_full_run_has_every_race_of_the_table() -> None:
    usual, full = _races(is_full=False), _races(is_full=True)
    assert full.keys() == {str(cell) for cell in ALL}
    assert usual.items() <= full.items()
    assert {name for name, marks in full.items() if "unlisted" not in marks} == {str(c) for c in DEFAULT}
