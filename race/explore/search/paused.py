"""World in which the first steps of a schedule were taken; many schedules may begin with these steps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from rewindmq.race.explore.model.simulated_cluster import SimulatedCluster
from rewindmq.race.explore.schedule.step import Step
from rewindmq.race.explore.search.choosers import RecordingChooser
from rewindmq.race.explore.search.explorer import ChoiceState, EquivalentError, Explorer
from rewindmq.race.explore.search.laws import judge_run
from rewindmq.race.explore.search.run import ScheduleOutcome, account_of, play_window


class _Walker(RecordingChooser):
    """Chooser that takes the steps of a path, and pauses the world before the choice that follows.

    Attributes:
        path: index of each step to take where there is a choice.
        passed: what the world asked and told at each step so far, also where only one step was possible.
    """

    def __init__(self) -> None:
        super().__init__()
        self.path: tuple[int, ...] = ()
        self.passed: list[tuple[list[Step], set[str]]] = []

    def pauses(self, steps: list[Step]) -> bool:
        return len(steps) > 1 and len(self.taken) == len(self.path)

    def choose(self, steps: list[Step], touched: set[str]) -> Step:
        self.passed.append((steps, touched))
        return super().choose(steps, touched)

    def pick(self, steps: list[Step]) -> int:
        return self.path[len(self.taken)]


class PausedWorld:
    """A world at rest, or paused in the window before a choice. ``play`` uses it up."""

    def __init__(self, cluster: SimulatedCluster, budget: int) -> None:
        self._cluster = cluster
        self._budget = budget
        self._walker = _Walker()
        self._window: asyncio.Task[tuple[float, bool]] | None = None

    def advance(self, path: tuple[int, ...]) -> None:
        """Take further steps of a path, and pause before the next choice.

        Args:
            path: longer than the path taken so far, and followed by a choice.
        """
        self._walker.path = path
        self._go_on(self._walker)

    def play(self, chooser: RecordingChooser, *, with_account: bool = False) -> ScheduleOutcome:
        """Run a schedule that begins with the steps taken so far; return its outcome.

        Raises:
            RaceError: a strict schedule names a step that is not possible.
        """
        states: Callable[[], tuple[ChoiceState, ...]] = (
            chooser.states if isinstance(chooser, Explorer) else tuple
        )
        try:
            for steps, touched in self._walker.passed:
                chooser.choose(steps, touched)
            opened_at, is_settled = self._go_on(chooser).result()
        except EquivalentError:
            return ScheduleOutcome(tuple(chooser.taken), is_equivalent=True, states=states())
        broken = judge_run(self._cluster.recorder.to_events(), is_at_rest=is_settled)
        return ScheduleOutcome(
            tuple(chooser.taken),
            broken,
            states=states(),
            names=tuple(chooser.names) if broken or with_account else (),
            account=account_of(self._cluster, opened_at) if with_account else None,
        )

    def _go_on(self, chooser: RecordingChooser) -> asyncio.Task[tuple[float, bool]]:
        world = self._cluster.world
        if self._window is None:
            self._window = world.begin(play_window(self._cluster, chooser, self._budget))
        else:
            self._cluster.scheduler.resume(chooser)
        world.go_on()
        return self._window
