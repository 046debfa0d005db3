"""Plays a race on a stage and compares its outcome with the documented one."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rewindmq.client.core.remedy import Remedy
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.runtime import SystemClock
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.checker import Verdict, judge
from rewindmq.race.checker.verdict import NOTHING_TO_JUDGE
from rewindmq.race.history import History
from rewindmq.race.scenario.catalogue import find_scenario
from rewindmq.race.scenario.scenario import Loss, Scenario
from rewindmq.race.sim.world import World
from rewindmq.race.stage.foreign import ALL_REWINDMQ, Outside
from rewindmq.race.stage.frame_points import without_inferred
from rewindmq.race.stage.outside import OutsideStage
from rewindmq.race.stage.processes import ProcessStage
from rewindmq.race.stage.settle import settle
from rewindmq.race.stage.simulated import SimulatedStage
from rewindmq.race.stage.stage import Stage

# A hundredth of every wait. With much less, a short pause of the machine would count as many seconds.
HELD_TIME_SCALE: Final = 0.01


class Staging(StrEnum):
    """The kind of stage that a race is played on."""

    SIMULATED = "simulated"
    HELD = "held"
    SCALED = "scaled"
    REAL = "real"


@dataclass(frozen=True, slots=True)
class Plan:
    """How to play a race.

    Attributes:
        time_scale: factor on every wait; 1 under virtual time.
        outside: programs that are not RewindMQ's; never under virtual time.
        remedy: added to the profile of the consumers.
    """

    scenario_id: str
    profile: Profile
    mode: ResetMode
    staging: Staging = Staging.SIMULATED
    time_scale: float = 1.0
    outside: Outside = ALL_REWINDMQ
    remedy: Remedy | None = None

    @property
    def scenario(self) -> Scenario:
        return find_scenario(self.scenario_id)

    @property
    def documented(self) -> frozenset[Loss]:
        """The documented outcome."""
        return self.scenario.documented(self.profile, self.mode, self.remedy)


@dataclass(frozen=True, slots=True)
class PlayOutcome:
    """The result of one run.

    Attributes:
        number: the seed; on stages without seeds, the number of the run.
        seconds: duration in real seconds.
        error: why the run could not be played to its end; None if it was.
    """

    plan: Plan
    number: int
    verdict: Verdict
    history: History
    seconds: float
    error: str | None = None

    @property
    def is_documented(self) -> bool:
        return self.error is None and self.verdict.losses == self.plan.documented


def play_simulated(plan: Plan, seed: int) -> PlayOutcome:
    """Play one run under virtual time in this thread, in which no event loop may run."""
    clock, world = SystemClock(), World(seed)
    stage = SimulatedStage(world, plan.profile, plan.mode, plan.remedy)
    began = clock.monotonic()

    async def main() -> str | None:
        async with stage:
            return await _play(plan.scenario, stage)

    log_level = logging.root.manager.disable
    # Clients and brokers log errors that the race provokes.
    logging.disable(logging.CRITICAL)
    try:
        error = world.run(main())
    finally:
        logging.disable(log_level)
    return _judged(plan, seed, stage.history, clock.monotonic() - began, error)


async def play_for_real(plan: Plan, number: int) -> PlayOutcome:
    """Play one run with real processes; end all of them, also when cancelled."""
    clock = SystemClock()
    began = clock.monotonic()
    async with _process_stage(plan) as stage:
        error = await _play(plan.scenario, stage)
    return _judged(plan, number, without_inferred(stage.history), clock.monotonic() - began, error)


def _process_stage(plan: Plan) -> ProcessStage:
    if plan.outside != ALL_REWINDMQ:
        return OutsideStage(
            plan.profile, plan.mode, plan.outside, time_scale=plan.time_scale, remedy=plan.remedy
        )
    is_held = plan.staging is Staging.HELD
    return ProcessStage(
        plan.profile, plan.mode, time_scale=plan.time_scale, is_held=is_held, remedy=plan.remedy
    )


async def _play(scenario: Scenario, stage: Stage) -> str | None:
    """Play a race and wait until it is at rest; return why that failed, or None."""
    try:
        await scenario.play(stage)
        await settle(stage)
    except RewindMQError as error:
        return str(error)
    return None


def _judged(plan: Plan, number: int, history: History, seconds: float, error: str | None) -> PlayOutcome:
    verdict = NOTHING_TO_JUDGE if error is not None else judge(history)
    return PlayOutcome(plan, number, verdict, history, seconds, error)
