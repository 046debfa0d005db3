"""Finds the possible steps whenever every host is at rest, has a chooser pick one, and takes it.

A state is a moment at which nothing is ready on any host. A *notable* event may have changed the state: a
chosen message arrives, an action happens, or the recorder calls ``note``. The possible steps are:

* the first message of a lane (a direction of a connection) arrives;
* due timers fire, all of one host together, before or after messages arrive there;
* an action of the model happens, if it is new or a notable event happened on its host since time last passed;
* time passes to the next timer that causes a notable event, or to a moment with timers of several hosts.

Messages that are in flight when time passes become late. At most ``budget`` lanes may become late in a
schedule. A late message may arrive after any later notable event; the messages behind it in its lane wait for
it.

Messages without influence on a reset arrive at once, in a fixed order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Protocol

from rewindmq.race.explore.schedule.flight import ExploredFabric, FlightLane
from rewindmq.race.explore.schedule.loop import ExploredLoop
from rewindmq.race.explore.schedule.step import EVERYWHERE, Action, Step, StepKind


class Chooser(Protocol):
    """Picks the next step."""

    def end(self, touched: set[str]) -> None:
        """Note the end of the window; for ``touched`` see ``choose``."""

    def pauses(self, steps: list[Step]) -> bool:
        """Return True if the world must stand still here, until ``resume`` gives it another chooser."""

    def choose(self, steps: list[Step], touched: set[str]) -> Step:
        """Return one of ``steps``; the first is what a fast network and prompt hosts would do.

        Args:
            steps: possible steps, in a fixed order.
            touched: the hosts on which code ran since the last choice.
        """


class Scheduler:
    """Runs a world step by step.

    It calls a chooser only inside a window. Outside it is *calm*: messages arrive and timers fire in a fixed
    order.

    Args:
        name_of: returns the name of a host.
        watched: hosts whose timers are choices; the timers of other hosts fire at once.

    Attributes:
        taken: time and name of each step since the window began.
        late_count: number of messages that became late.
        on_calm: called while calm, before time passes, when nothing is ready or in flight.
        is_over: called when only time can pass, apart from actions that may be left out; True closes the
            window early.
    """

    def __init__(
        self,
        loop: ExploredLoop,
        fabric: ExploredFabric,
        name_of: Callable[[str], str],
        watched: Collection[str],
    ) -> None:
        self._loop = loop
        self._fabric = fabric
        self._name_of = name_of
        self._watched = watched
        self._chooser: Chooser | None = None
        self._budget = 0
        self._until = 0.0
        # Offered actions, with the number of the step that offered each.
        self._actions: dict[str, tuple[Action, int]] = {}
        # Hosts with a notable event or a new action since time last passed; free steps need such a host.
        self._fresh: set[str] = set()
        self._touched: set[str] = set()
        self._is_noted = False
        self._is_paused = False
        self.taken: list[tuple[float, str]] = []
        self.late_count = 0
        self.on_calm: Callable[[], None] = lambda: None
        self.is_over: Callable[[], bool] = lambda: False

    def open(self, chooser: Chooser, *, budget: int, until: float) -> None:
        """Open the window: call ``chooser`` until the virtual time ``until`` (seconds)."""
        self._chooser = chooser
        self._budget = budget
        self._until = until
        self._fresh.add(EVERYWHERE)

    def resume(self, chooser: Chooser) -> None:
        """Continue a world that stands still before a choice, with a chooser that knows the steps so far."""
        self._chooser = chooser
        self._is_paused = False

    def offer(self, action: Action) -> None:
        """Make an action a possible step from now on."""
        self._actions[action.name] = action, self._fabric.step_number
        self._fresh.add(action.host)

    def note(self) -> None:
        """Record a notable event in the current step."""
        self._is_noted = True

    def make_ready(self) -> None:
        """Make something ready to run, or pause; the loop's ``when_idle``."""
        loop = self._loop
        while not loop.is_busy and not self._is_paused:
            lanes, due = self._fabric.lanes(), loop.due_hosts()
            if self._chooser is None:
                self._make_ready_calmly(lanes, due)
            elif not self._do_automatic(lanes, due):
                self._choose(self._chooser, lanes, due)

    def _make_ready_calmly(self, lanes: list[FlightLane], due: list[str]) -> None:
        if lanes:
            self._fabric.deliver(lanes[0])
        elif due:
            self._loop.fire(due[0])
        else:
            self.on_calm()
            if not self._loop.is_busy:
                self._loop.pass_time()

    def _do_automatic(self, lanes: list[FlightLane], due: list[str]) -> bool:
        for lane in lanes:
            if not lane.messages[0].is_chosen:
                self._touched.add(lane.receiver)
                self._fabric.deliver(lane)
                return True
        for host in due:
            if host not in self._watched:
                self._touched.add(host)
                self._loop.fire(host)
                return True
        return self._pass_idle_time(lanes, due)

    def _pass_idle_time(self, lanes: list[FlightLane], due: list[str]) -> bool:
        """Let more time pass without a choice, as part of the same step, while there is nothing to choose."""
        if self._is_noted or self._fresh or (lanes and any(not lane.late for lane in lanes)):
            return False
        if len(due) > 1:
            return False
        if due:
            self._touched.add(due[0])
            self._loop.fire(due[0])
            return True
        moment = self._loop.next_moment
        if moment is None or moment > self._until:
            return False
        self._touched.add(EVERYWHERE)
        self._loop.pass_time()
        return True

    def _choose(self, chooser: Chooser, lanes: list[FlightLane], due: list[str]) -> None:
        if self._is_noted:
            self._is_noted = False
            self._fresh.update(self._touched, (EVERYWHERE,))
        steps = self._possible(lanes, due)
        if not steps or (steps[0].kind is StepKind.TICK and self._may_end(lanes) and self.is_over()):
            self._close(chooser)
            return
        if chooser.pauses(steps):
            self._is_paused = True
            self._loop.stop()
            return
        step = chooser.choose(steps, self._touched)
        self.taken.append((self._loop.time(), step.name))
        self._touched = {step.host}
        if step.kind is StepKind.TICK:
            self._fresh.clear()
        self.late_count += step.cost
        self._fabric.step_number += 1
        step.run()

    def _may_end(self, lanes: list[FlightLane]) -> bool:
        return not lanes and all(action.may_be_last for action, _ in self._actions.values())

    def _close(self, chooser: Chooser) -> None:
        """End the window: take the forced actions that have not happened; late messages arrive afterwards."""
        chooser.end(self._touched)
        self._chooser = None
        for action, _ in list(self._actions.values()):
            if action.is_forced:
                self._do(action)

    def _possible(self, lanes: list[FlightLane], due: list[str]) -> list[Step]:
        """Return the possible steps: first what a fast network and prompt hosts do, last the free steps."""
        timely = [lane for lane in lanes if not lane.late]
        steps = [self._delivery(lane) for lane in timely]
        steps += [self._firing(host) for host in due]
        if not due and self.late_count + len(timely) <= self._budget:
            moment = self._loop.next_moment
            if moment is not None and moment <= self._until:
                steps.append(self._tick(timely))
        fresh = self._fresh
        if fresh:
            steps += [self._delivery(lane) for lane in lanes if lane.late and lane.receiver in fresh]
            steps += [
                self._act(action, born) for action, born in self._actions.values() if action.host in fresh
            ]
        return steps

    def _delivery(self, lane: FlightLane) -> Step:
        def deliver() -> None:
            self._is_noted = True
            self._fabric.deliver(lane)

        message = lane.messages[0]
        name = f"deliver {lane.name} {message.name}"
        return Step(
            StepKind.DELIVER,
            name,
            lane.receiver,
            deliver,
            lane=lane.name,
            born=message.born,
            is_free=lane.late,
        )

    def _firing(self, host: str) -> Step:
        return Step(StepKind.FIRE, f"timers of {self._name_of(host)}", host, partial(self._loop.fire, host))

    def _act(self, action: Action, born: int) -> Step:
        run = partial(self._do, action)
        return Step(StepKind.ACT, action.name, action.host, run, born=born, is_free=True)

    def _tick(self, newly_late: list[FlightLane]) -> Step:
        def tick() -> None:
            for lane in newly_late:
                lane.late = True
            self._loop.pass_time()

        late = "".join(f", late: {lane.name} {lane.messages[0].name}" for lane in newly_late)
        delayed = tuple(lane.messages[0].born for lane in newly_late)
        return Step(StepKind.TICK, f"time passes{late}", EVERYWHERE, tick, delayed)

    def _do(self, action: Action) -> None:
        del self._actions[action.name]
        self._is_noted = True
        action.run()
