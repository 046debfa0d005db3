"""Journal: records the history of a run and wakes the waits for its events."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rewindmq.protocol.points import Point, Probe
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.race.errors import RaceError
from rewindmq.race.history import Event, History, Kind


@dataclass(slots=True)
class _Watch:
    """A wait for ``missing`` more events."""

    wanted: Mapping[str, Any]
    missing: int
    future: asyncio.Future[Event]


class Journal:
    """Records a history, in protocol seconds since the journal was made.

    Args:
        runtime: of the laboratory; its clock is the history's.
        patience: lower bound of every wait's timeout, in protocol seconds.
    """

    def __init__(self, runtime: Runtime, patience: float = 0.0) -> None:
        self.history = History()
        self._runtime = runtime
        self._patience = patience
        self._began = runtime.clock.monotonic()
        self._watches: dict[Kind, list[_Watch]] = {}
        self._is_closed = False

    @property
    def now(self) -> float:
        """Protocol seconds since the journal was made."""
        return self._runtime.clock.monotonic() - self._began

    def since_beginning(self, monotonic: float) -> float:
        """Convert the time of another process's clock of the same scale to seconds of this history."""
        return monotonic - self._began

    def add(self, event: Event) -> None:
        """Record an event, unless the journal is closed."""
        if self._is_closed:
            return
        self.history.add(event)
        watches = self._watches.get(event.kind)
        if watches:
            self._notify(watches, event)

    def note(self, process: str, kind: Kind, **details: Any) -> None:
        """Record an event that happens now."""
        self.add(Event(self.now, process, kind, details))

    def probe(self, process: str) -> Probe:
        """Return the probe of one process's runtime, which records its points."""

        def probe(point: Point, details: dict[str, Any]) -> None:
            self.add(Event(self.now, process, point, details))

        return probe

    def close(self) -> None:
        """Ignore later events: they belong to the end of the processes, not to the race."""
        self._is_closed = True

    async def until(self, kind: Kind, *, seconds: float, count: int, wanted: Mapping[str, Any]) -> Event:
        """See ``Stage.until``."""
        known = [event for event in self.history.of(kind) if _matches(event, wanted)]
        if len(known) >= count:
            return known[count - 1]
        watch = _Watch(wanted, count - len(known), asyncio.get_running_loop().create_future())
        watches = self._watches.setdefault(kind, [])
        watches.append(watch)
        timer = self._runtime.timers.call_later(
            max(seconds, self._patience), self._give_up, watch, f"no {kind} {_describe(wanted)}", seconds
        )
        try:
            return await watch.future
        finally:
            timer.cancel()
            watches.remove(watch)

    @staticmethod
    def _notify(watches: list[_Watch], event: Event) -> None:
        for watch in watches:
            if watch.missing and _matches(event, watch.wanted):
                watch.missing -= 1
                if not watch.missing and not watch.future.done():
                    watch.future.set_result(event)

    @staticmethod
    def _give_up(watch: _Watch, what: str, seconds: float) -> None:
        if not watch.future.done():
            watch.future.set_exception(RaceError(f"{what} within {seconds:g} s"))


def _matches(event: Event, wanted: Mapping[str, Any]) -> bool:
    details = event.details
    return all(
        (event.process if name == "process" else details.get(name)) == value for name, value in wanted.items()
    )


def _describe(wanted: Mapping[str, Any]) -> str:
    return "(" + ", ".join(f"{name}={value}" for name, value in wanted.items()) + ")"
