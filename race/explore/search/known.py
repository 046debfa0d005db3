"""Random schedules that a search has run: when it draws one of them again, it does not run it again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from rewindmq.race.errors import RaceError
from rewindmq.race.explore.schedule.step import Step
from rewindmq.race.explore.search.choosers import RecordingChooser
from rewindmq.race.explore.search.run import Options, ScheduleOutcome

# A state takes about 1 KiB.
_MAX_STATES: Final = 200_000
_FIRST: Final = 0


@dataclass(slots=True)
class _State:
    """A state with a choice: its possible steps, and what follows each step that was taken."""

    steps: list[Step]
    children: _Children = field(default_factory=dict)

    @property
    def options(self) -> Options:
        """Kind and name of each possible step."""
        return tuple((step.kind, step.name) for step in self.steps)


@dataclass(slots=True)
class Draw:
    """A schedule that is being drawn.

    Attributes:
        number: its number among all schedules of the search.
        chooser: draws its steps.
        children, index: the place in the tree that the schedule has reached.
    """

    number: int
    chooser: RecordingChooser
    children: _Children
    index: int = _FIRST

    @property
    def path(self) -> tuple[int, ...]:
        """Indexes of the steps drawn so far."""
        return tuple(self.chooser.taken)


class _Running(list[Draw]):
    """A path that is being run, with the schedules that begin with it and wait for the result."""


_Children = dict[int, _State | ScheduleOutcome | _Running]


class KnownSchedules:
    """Tree of the states that random schedules have passed, with the outcomes at its leaves.

    A world in which the same steps are taken does the same again. A sample is run twice to check this.
    So a chooser can draw its steps from the tree alone, as far as the tree knows the states.
    """

    def __init__(self) -> None:
        self._first: _Children = {}
        self._states = 0

    def draw(self, number: int, chooser: RecordingChooser) -> Draw:
        """Begin a schedule."""
        return Draw(number, chooser, self._first)

    def advance(self, draw: Draw) -> ScheduleOutcome | None:
        """Draw steps as far as the states are known; return the outcome of a known schedule.

        If the result is None, ``is_waiting`` tells whether another schedule runs the same path now.
        """
        while isinstance(known := draw.children.get(draw.index), _State):
            step = draw.chooser.choose(known.steps, set())
            draw.children, draw.index = known.children, known.steps.index(step)
        return known if isinstance(known, ScheduleOutcome) else None

    def begin(self, draw: Draw) -> bool:
        """Return True if the schedule must be run; False if it waits for one that runs the same path."""
        running = draw.children.get(draw.index)
        if isinstance(running, _Running):
            running.append(draw)
            return False
        if self._states < _MAX_STATES:
            draw.children[draw.index] = _Running()
        return True

    def end(self, draw: Draw, outcome: ScheduleOutcome) -> Sequence[Draw]:
        """Add the outcome of a schedule that was run; return the schedules that waited for it.

        Raises:
            RaceError: the schedule took other steps than those drawn.
        """
        if outcome.taken[: len(draw.chooser.taken)] != draw.path:
            raise RaceError(
                f"schedule {draw.number} took other steps than a schedule with the same beginning"
            )
        waiting = draw.children.get(draw.index)
        if isinstance(waiting, _Running):
            del draw.children[draw.index]
        self.add(outcome, len(draw.chooser.taken))
        return waiting if isinstance(waiting, _Running) else ()

    def add(self, outcome: ScheduleOutcome, known: int = 0) -> None:
        """Add the outcome of a schedule whose first ``known`` states are in the tree.

        Raises:
            RaceError: an earlier schedule with the same steps had other choices or another outcome.
        """
        children, index = self._first, _FIRST
        for depth, taken in enumerate(outcome.taken):
            state = children.get(index)
            if state is None and depth >= known and self._states < _MAX_STATES:
                self._states += 1
                state = children[index] = _State(_steps(outcome.options[depth - known]))
            if isinstance(state, ScheduleOutcome):
                raise RaceError("a schedule went on after its last choice when run twice")
            if not isinstance(state, _State):
                return
            if depth >= known and state.options != tuple(outcome.options[depth - known]):
                raise RaceError("a schedule had other possible steps when run twice")
            children, index = state.children, taken
        if isinstance(children.get(index), _State):
            raise RaceError("a schedule ended before its last choice when run twice")
        again = children.setdefault(index, outcome._replace(options=(), account=None))
        if isinstance(again, ScheduleOutcome) and (again.taken, again.broken) != (
            outcome.taken,
            outcome.broken,
        ):
            raise RaceError("a schedule gave two different outcomes when run twice")


def _steps(options: Options) -> list[Step]:
    return [Step(kind, name, "", _taken_elsewhere) for kind, name in options]


def _taken_elsewhere() -> None:
    raise AssertionError("a step of the tree is taken in a world")
