"""Records the history of an explored run at little cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from rewindmq.protocol.points import Point, Probe
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.race.history import Event, Kind
from rewindmq.race.stage.journal import Journal

# Points at which no state changes: every step that is possible afterwards was possible before.
_IDLE: Final = frozenset({Point.PERSIST_TICK, Point.REBALANCED})


class ModelJournal(Journal):
    """Journal that stores events in the order in which they come.

    Args:
        runtime: the laboratory's runtime; its clock gives the times of the events.
        changed: called after every event that may have changed state.
    """

    def __init__(self, runtime: Runtime, changed: Callable[[], None]) -> None:
        super().__init__(runtime)
        self._clock = runtime.clock.monotonic
        self._changed = changed
        self.events: list[tuple[float, str, Kind, dict[str, Any]]] = []

    def note(self, process: str, kind: Kind, **details: Any) -> None:
        """Record an event with the current time."""
        self.events.append((self._clock(), process, kind, details))
        self._changed()

    def probe(self, process: str) -> Probe:
        """Return the probe of one process: its runtime calls it at each point."""
        add, now, changed = self.events.append, self._clock, self._changed

        def probe(point: Point, details: dict[str, Any]) -> None:
            add((now(), process, point, details))
            if point not in _IDLE:
                changed()

        return probe

    def to_events(self) -> list[Event]:
        """Return all events so far, in order."""
        return [Event(*event) for event in self.events]
