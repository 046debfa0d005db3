"""The history of an explored run, as cheap as it can be taken down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from rewindmq.protocol.points import Point, Probe
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.race.history import Event, Kind
from rewindmq.race.stage.journal import Journal

# Points that change nothing: what could happen after them could as well have happened before.
_IDLE: Final = frozenset({Point.PERSIST_TICK, Point.REBALANCED})


class Recorder(Journal):
    """A journal that only keeps events as they come.

    Args:
        runtime: of the laboratory; its clock is the history's.
        changed: told of every event that may have changed something.
    """

    def __init__(self, runtime: Runtime, changed: Callable[[], None]) -> None:
        super().__init__(runtime)
        self._clock = runtime.clock.monotonic
        self._changed = changed
        self.events: list[tuple[float, str, Kind, dict[str, Any]]] = []

    def note(self, process: str, kind: Kind, **details: Any) -> None:
        """Take down something that happens now."""
        self.events.append((self._clock(), process, kind, details))
        self._changed()

    def probe(self, process: str) -> Probe:
        """What one process's runtime calls at its points."""
        add, now, changed = self.events.append, self._clock, self._changed

        def probe(point: Point, details: dict[str, Any]) -> None:
            add((now(), process, point, details))
            if point not in _IDLE:
                changed()

        return probe

    def to_events(self) -> list[Event]:
        """Everything so far, in order."""
        return [Event(*event) for event in self.events]
