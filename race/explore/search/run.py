"""The window of one schedule, from a world at rest until it is at rest again, and the outcome."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Final, NamedTuple

from rewindmq.race.explore.model.simulated_cluster import SimulatedCluster
from rewindmq.race.explore.schedule.step import EVERYWHERE, Step, StepKind
from rewindmq.race.explore.search.choosers import RecordingChooser
from rewindmq.race.explore.search.explorer import ChoiceState
from rewindmq.race.explore.search.laws import Broken

# The cluster settles within this time after the window: consumers rebalance every 20 s, and the broker
# suspends a pull for 20 s.
REST_SECONDS: Final = 32.0

# The possible steps at a state, as a chooser sees them: kind and name of each.
Options = tuple[tuple[StepKind, str], ...]


class ScheduleOutcome(NamedTuple):
    """Outcome of a schedule.

    Attributes:
        taken: index of the step taken at each state with a choice.
        broken: the broken laws.
        is_equivalent: True if it was stopped early because an explored schedule is equivalent.
        states: the states with a choice, for an exhaustive search; otherwise empty.
        names: names of the steps taken at states with a choice, if a law was broken or the job wants an
            account; otherwise empty.
        account: the run's steps and history, if the job wants an account.
        options: the possible steps at each state with a choice after those that the job knows, for a random
            search; otherwise empty.
        error: why the schedule could not be run; "" if it could.
    """

    taken: tuple[int, ...]
    broken: tuple[Broken, ...] = ()
    is_equivalent: bool = False
    states: tuple[ChoiceState, ...] = ()
    names: tuple[str, ...] = ()
    account: Account | None = None
    options: tuple[Options, ...] = ()
    error: str = ""

    @property
    def deviations(self) -> int:
        """Number of choices that differ from the default order."""
        return sum(1 for index in self.taken if index)

    @property
    def laws(self) -> frozenset[str]:
        """Names of the broken laws."""
        return frozenset(broken.law for broken in self.broken)


class Account(NamedTuple):
    """Steps and history of a run.

    Attributes:
        opened_at: time at which the window opened, seconds.
        steps: time and name of each step, also of steps without an alternative.
        history: one line per event.
    """

    opened_at: float
    steps: tuple[tuple[float, str], ...]
    history: str

    @property
    def digest(self) -> str:
        """Digest of the steps and the history."""
        digest = hashlib.blake2b(self.history.encode(), digest_size=16)
        for at, name in self.steps:
            digest.update(f"{at:.6f} {name}\n".encode())
        return digest.hexdigest()


def account_of(cluster: SimulatedCluster, opened_at: float) -> Account:
    """Return the steps and the history of a run that has ended."""
    history = "".join(event.to_json() + "\n" for event in cluster.recorder.to_events())
    return Account(opened_at, tuple(cluster.scheduler.taken), history)


async def play_window(
    cluster: SimulatedCluster, chooser: RecordingChooser, budget: int
) -> tuple[float, bool]:
    """Run the window; return when it opened, and whether the cluster came to rest afterwards."""
    phases = [
        Step(StepKind.ACT, f"window opens after {seconds:g} s", EVERYWHERE, lambda: None, is_free=True)
        for seconds in cluster.model.phases
    ]
    step = chooser.choose(phases, {EVERYWHERE})
    await cluster.sleep(cluster.model.phases[phases.index(step)])
    over: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    scheduler, opened_at = cluster.scheduler, cluster.world.now
    until = opened_at + cluster.model.window

    def check_settled() -> None:
        is_settled = cluster.is_settled()
        if not over.done() and (is_settled or cluster.world.now > until + REST_SECONDS):
            over.set_result(is_settled)

    scheduler.on_calm = check_settled
    scheduler.is_over = cluster.is_settled
    scheduler.open(chooser, budget=budget, until=until)
    cluster.begin()
    return opened_at, await over
