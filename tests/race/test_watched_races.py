"""An administrator who watches a reset never takes a lost one for proven (docs/watched_reset.md)."""

from __future__ import annotations

from typing import Final

import pytest

from rewindmq.client.admin.watched_reset.states import State
from rewindmq.race.play.run import Plan
from rewindmq.race.scenario.catalogue import SCENARIOS
from rewindmq.race.scenario.choose import choose_case
from rewindmq.race.scenario.scenario import Loss
from tests.race.watched import Watched, play_watched

COMPUTING: Final = (pytest.mark.long, pytest.mark.computing, pytest.mark.chosen)
# Seconds after the reset by which a loss is named.
LATEST: Final = 80.0
# From outside, these look like a redelivery between two samples (docs/watched_reset.md).
UNDECIDED: Final = frozenset({"UNASSIGNED", "S5", "S7"})
LOST: Final = frozenset({Loss.L1, Loss.L2, Loss.L3})
# One that shows as a jump of the stored offset, and one that shows as nothing redelivered.
SHOWN: Final = ("R1", "R6b")


def play(scenario_id: str, seed: int) -> Watched:
    watched = play_watched(Plan(scenario_id, *choose_case(SCENARIOS[scenario_id], None, None)), seed)
    assert watched.error is None
    return watched


def check(scenario_id: str, seed: int) -> None:
    watched = play(scenario_id, seed)
    states = {queue.state for queue in watched.queues}
    if not watched.verdict.losses & LOST:
        # A reset that was kept is proven, or was too fast to see.
        assert State.LOST not in states or scenario_id == "PULL", (seed, watched.queues)
        return
    assert states != {State.PROVEN}, (seed, watched.queues)
    if scenario_id in UNDECIDED:
        return
    lost = [queue for queue in watched.queues if queue.state is State.LOST]
    assert lost, (seed, watched.queues)
    assert min(queue.since for queue in lost) <= LATEST
    assert all(scenario_id in queue.races for queue in lost), (seed, lost)


@pytest.mark.parametrize("scenario_id", SHOWN)
def test_a_lost_reset_is_seen_as_lost(scenario_id: str) -> None:
    check(scenario_id, 0)


@pytest.mark.parametrize(
    "scenario_id", [pytest.param(item, marks=COMPUTING) for item in SCENARIOS if item not in SHOWN]
)
def test_the_watcher_names_each_loss_and_never_proves_a_lost_reset(scenario_id: str, full: bool) -> None:
    """Play 1,000 seeds; without ``--full``, three."""
    for seed in range(1_000 if full else 3):
        check(scenario_id, seed)
