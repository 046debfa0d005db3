"""The part of the client tests that CI runs leaves out no pair of client, scenario and release."""

from __future__ import annotations

from tools.interop.plan import MEETS, REFERENCE, plays, with_references
from tools.interop.scenarios import SCENARIOS

_ALL = [play for play in plays() if play.unplayed is None]
_CHOSEN = [play for play in _ALL if play.is_chosen]


def test_every_client_plays_every_scenario_at_one_release_and_the_profile_that_imitates_it() -> None:
    for client in MEETS:
        for feature in SCENARIOS:
            chosen = [play for play in _CHOSEN if (play.client.name, play.feature) == (client, feature)]
            (ours,) = [play for play in chosen if play.reference is not None]
            assert {play.server for play in chosen} == {ours.server, REFERENCE[ours.server]}


def test_every_scenario_is_played_at_every_cluster() -> None:
    assert {(play.feature, play.server) for play in _CHOSEN} == {(p.feature, p.server) for p in _ALL}


def test_every_client_meets_every_cluster_that_it_has() -> None:
    assert {(play.client, play.server) for play in _CHOSEN} == {(p.client, p.server) for p in _ALL}


def test_what_is_chosen_has_what_it_is_compared_with() -> None:
    assert set(with_references(_CHOSEN)) == set(_CHOSEN)
