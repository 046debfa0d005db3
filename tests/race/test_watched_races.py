"""An administrator who watches a reset never takes a lost one for proven (docs/watched_reset.md)."""

from __future__ import annotations

from typing import Final

import pytest

from rewindmq.race.play.run import Plan
from rewindmq.race.scenario.catalogue import SCENARIOS
from rewindmq.race.scenario.choose import choose_case
from rewindmq.race.scenario.scenario import Loss
from rewindmq.watch.verdict.states import State
from tests.race.watched import Watched, play_watched

# Seconds after the reset by which a loss is named.
LATEST: Final = 80.0
# From outside, these look like a redelivery between two samples (docs/watched_reset.md). By broker.
UNDECIDED: Final = {True: frozenset({"S7"}), False: frozenset({"UNASSIGNED", "S5", "S7"})}
# So do these in a few seeds at RocketMQ: the consumer consumed a message right before the reset.
SELDOM_UNDECIDED: Final = {True: frozenset[str](), False: frozenset({"S4", "R6b"})}
LOST: Final = frozenset({Loss.L1, Loss.L2, Loss.L3})
# Kept resets that RewindMQ's brokers prove, and when at the latest: some consume slowly.
PROVEN: Final = {
    **dict.fromkeys(("R5", "R7", "R8", "R10", "PERSIST"), 20.0),
    **dict.fromkeys(("SEED", "ORDERLY"), 50.0),
}
BROKERS: Final = pytest.mark.parametrize("asks_rewinds", [True, False], ids=["RewindMQ", "RocketMQ"])
# One that shows as a jump of the stored offset, and one that shows as nothing redelivered.
SHOWN: Final = ("R1", "R6b")


# The watcher counts a redelivery only if the group was idle for more than a minute.
IDLE: Final = 90.0
# The race needs a rebalance, or a commit, that an idle group does not make in time.
NOT_IDLE: Final = frozenset({"R4", "S5"})
# Seeds without ``--full``, by parameter. With it, all in blocks, so that a run can be continued.
SEEDS: Final = {"seeds": 5, "idle_seeds": 2}
ALL_SEEDS: Final = 1_000
BLOCK: Final = 50


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    is_full = metafunc.config.getoption("--full")
    for name in SEEDS.keys() & set(metafunc.fixturenames):
        count, block = (ALL_SEEDS, BLOCK) if is_full else (SEEDS[name], SEEDS[name])
        blocks = [range(first, first + block) for first in range(0, count, block)]
        metafunc.parametrize(name, blocks, ids=lambda seeds: f"seeds{seeds.start:03}to{seeds.stop - 1:03}")


def play(scenario_id: str, seed: int, idle: float = 0.0, *, asks_rewinds: bool = True) -> Watched:
    plan = Plan(scenario_id, *choose_case(SCENARIOS[scenario_id], None, None))
    watched = play_watched(plan, seed, idle, asks_rewinds=asks_rewinds)
    assert watched.error is None
    return watched


def is_lost(watched: Watched) -> bool:
    """Return True if the judge says so, who sees everything. Then no queue that is lost may be proven."""
    if not watched.verdict.losses & LOST:
        return False
    lost = {(each.broker_name, each.queue_id) for each in watched.verdict.violations if each.loss in LOST}
    proven = {
        (item.queue.broker_name, item.queue.queue_id) for item in watched.queues if item.state is State.PROVEN
    }
    assert not lost & proven, watched
    return True


def check(scenario_id: str, seed: int, *, asks_rewinds: bool = True) -> None:
    watched = play(scenario_id, seed, asks_rewinds=asks_rewinds)
    lost = [queue for queue in watched.queues if queue.state is State.LOST]
    if not is_lost(watched):
        # A reset that was kept is proven, or was too fast to see.
        assert not lost or scenario_id == "PULL", (seed, watched.queues)
        if asks_rewinds and scenario_id in PROVEN:
            assert {queue.state for queue in watched.queues} == {State.PROVEN}, (seed, watched.queues)
            assert max(queue.since for queue in watched.queues) <= PROVEN[scenario_id], (seed, watched.queues)
        return
    is_seldom = scenario_id in SELDOM_UNDECIDED[asks_rewinds] and not lost
    if is_seldom or scenario_id in UNDECIDED[asks_rewinds]:
        return
    assert lost, (seed, watched.queues)
    assert min(queue.since for queue in lost) <= LATEST
    assert all(scenario_id in queue.races for queue in lost), (seed, lost)


@pytest.mark.parametrize("scenario_id", SHOWN)
def test_a_lost_reset_is_seen_as_lost(scenario_id: str) -> None:
    check(scenario_id, 0)


def test_a_kept_reset_is_proven() -> None:
    check("PERSIST", 0)


def test_the_fast_redelivery_of_an_idle_group_is_counted_at_rocketmq() -> None:
    watched = play("PERSIST", 0, IDLE, asks_rewinds=False)
    assert not is_lost(watched)
    assert {queue.state for queue in watched.queues} == {State.PROVEN}


@BROKERS
@pytest.mark.parametrize("scenario_id", [pytest.param(item, marks=pytest.mark.slow) for item in SCENARIOS])
def test_the_watcher_names_each_loss_and_never_proves_a_lost_reset(
    scenario_id: str, asks_rewinds: bool, seeds: range
) -> None:
    for seed in seeds:
        check(scenario_id, seed, asks_rewinds=asks_rewinds)


@BROKERS
@pytest.mark.parametrize(
    "scenario_id", [pytest.param(item, marks=pytest.mark.slow) for item in SCENARIOS if item not in NOT_IDLE]
)
def test_the_watcher_never_proves_a_lost_reset_of_a_group_that_was_idle(
    scenario_id: str, asks_rewinds: bool, idle_seeds: range
) -> None:
    for seed in idle_seeds:
        is_lost(play(scenario_id, seed, IDLE, asks_rewinds=asks_rewinds))
