"""Names of the races that run at one cluster; each history shows the laboratory's names instead."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.race.history import Event
from rewindmq.race.proxy.pattern import FramePattern
from rewindmq.race.stage.journal import Journal
from rewindmq.race.stage.stage import GROUP, TOPIC

_FOREIGN: Final = re.compile(r"[^A-Za-z0-9_-]")
_NAMED: Final = ("topic", "group", "consumerGroup")


@dataclass(frozen=True, slots=True)
class Names:
    """The topic and the group of one race."""

    topic: str
    group: str

    @classmethod
    def of(cls, race: str) -> Names:
        name = _FOREIGN.sub("_", race)
        return cls(f"Topic-{name}", f"Group-{name}")

    def as_laboratory(self, event: Event) -> Event:
        """Return the event with the laboratory's names."""
        details = self._renamed(event.details)
        if "fields" in details:
            details["fields"] = self._renamed(details["fields"])
        return replace(event, details=details)

    def as_sent(self, pattern: FramePattern) -> FramePattern:
        """Return the pattern with the race's own names, as frames have them."""
        real = {TOPIC: self.topic, GROUP: self.group}
        fields = {name: real.get(value, value) for name, value in pattern.fields.items()}
        return replace(pattern, fields=fields)

    def _renamed(self, details: Mapping[str, Any]) -> dict[str, Any]:
        plays = {self.topic: TOPIC, self.group: GROUP}
        return {name: plays.get(value, value) if name in _NAMED else value for name, value in details.items()}


class NamedJournal(Journal):
    """A journal that stores every event under the laboratory's names."""

    def __init__(self, runtime: Runtime, patience: float, names: Names) -> None:
        super().__init__(runtime, patience)
        self._names = names

    def add(self, event: Event) -> None:
        super().add(self._names.as_laboratory(event))
