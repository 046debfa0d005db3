"""The history of a run: the events of all processes, ordered by time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from rewindmq.protocol.points import Point
from rewindmq.race.errors import RaceError


class Lab(StrEnum):
    """Events that the laboratory adds to the trace points of the code (``protocol/points.py``)."""

    # Frames that pass a proxy; ``race/proxy/frame.py`` describes their details.
    FRAME_SENT = "frame.sent"
    FRAME_ARRIVED = "frame.arrived"
    FRAME_HELD = "frame.held"
    FRAME_RELEASED = "frame.released"
    FRAME_DROPPED = "frame.dropped"
    # Steps of the scenario.
    MESSAGE_SENT = "lab.message_sent"
    RESET_STARTED = "lab.reset_started"
    RESET_ACKNOWLEDGED = "lab.reset_acknowledged"
    RESET_REFUSED = "lab.reset_refused"
    PROCESS_STARTED = "lab.process_started"
    PROCESS_STOPPED = "lab.process_stopped"
    PROCESS_KILLED = "lab.process_killed"
    STORED_OFFSET = "lab.stored_offset"
    NOTE = "lab.note"


Kind = Point | Lab
_KINDS: Final[Mapping[str, Kind]] = {str(kind): kind for kinds in (Point, Lab) for kind in kinds}


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a run.

    Attributes:
        at: protocol seconds since the run began.
        process: name of the process: ``broker-a``, ``consumer-A``, ``admin``, ``lab``.
        details: plain values (strings, integers, booleans, lists and maps of them), see
            ``docs/race/events.md``.
    """

    at: float
    process: str
    kind: Kind
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return one line of JSON; the same event gives the same bytes."""
        value = {"at": round(self.at, 6), "process": self.process, "kind": self.kind, "details": self.details}
        return json.dumps(value, separators=(",", ":"), sort_keys=True)

    @classmethod
    def from_json(cls, line: str) -> Event:
        """Parse a line of ``to_json``.

        Raises:
            RaceError: the line is not an event.
        """
        try:
            value = json.loads(line)
            return cls(float(value["at"]), str(value["process"]), _KINDS[value["kind"]], value["details"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise RaceError(f"not an event: {line[:80]!r} ({error})") from None


class History:
    """Events ordered by time; events of the same time keep the order in which they were added."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._events = sorted(events, key=lambda event: event.at)

    def __iter__(self) -> Iterator[Event]:
        return iter(self._events)

    def __len__(self) -> int:
        return len(self._events)

    def __getitem__(self, index: int) -> Event:
        return self._events[index]

    def add(self, event: Event) -> None:
        """Insert an event by its time."""
        events = self._events
        if events and event.at < events[-1].at:
            position = len(events)
            while position and events[position - 1].at > event.at:
                position -= 1
            events.insert(position, event)
        else:
            events.append(event)

    def of(self, *kinds: Kind, **wanted: Any) -> list[Event]:
        """Return the events of these kinds whose details (or ``process``) have these values."""
        process = wanted.pop("process", None)
        return [
            event
            for event in self._events
            if event.kind in kinds
            and (process is None or event.process == process)
            and all(event.details.get(name) == value for name, value in wanted.items())
        ]

    def to_lines(self) -> str:
        """Return one JSON line per event."""
        return "".join(event.to_json() + "\n" for event in self._events)

    @classmethod
    def from_lines(cls, text: str) -> History:
        """Parse the text of ``to_lines``; RaceError if a line is not an event."""
        return cls(Event.from_json(line) for line in text.splitlines() if line.strip())
