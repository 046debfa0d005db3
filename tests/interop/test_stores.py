"""A real broker opens our store and ours opens a real one: message for message, offset for offset."""

from __future__ import annotations

import pytest
from interop.store_chain import PROFILES, Chain

pytestmark = pytest.mark.interop

HAND_OVERS = (
    "theirs, killed, opened by ours",
    "ours, stopped, opened by theirs",
    "theirs, stopped, opened by ours",
    "ours, killed, opened by theirs",
    "begun by ours, killed, opened by theirs",
    "begun by ours, stopped by theirs, opened by ours",
)


@pytest.fixture(params=PROFILES)
def chain(request: pytest.FixtureRequest, store_chains: dict[str, Chain | BaseException]) -> Chain:
    played = store_chains[request.param]
    if isinstance(played, BaseException):
        raise played
    return played


@pytest.mark.parametrize("title", HAND_OVERS)
def test_the_next_broker_serves_what_the_one_before_did(chain: Chain, title: str) -> None:
    step = chain.hand_overs[title]
    assert step.after - step.before == []


@pytest.mark.parametrize("title", HAND_OVERS)
def test_opening_a_store_changes_no_byte_of_its_messages(chain: Chain, title: str) -> None:
    assert chain.hand_overs[title].files_changed == []
