"""Events: a probe that keeps what it hears, for scenarios under virtual time."""

from __future__ import annotations

from typing import Any

from rewindmq.protocol.points import Point
from rewindmq.race.sim import World


class Events:
    """The points that were passed, with the second each was passed at and its details."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.heard: list[tuple[float, Point, dict[str, Any]]] = []

    def __call__(self, point: Point, details: dict[str, Any]) -> None:
        self.heard.append((self._world.now, point, details))

    def at(self, point: Point, **wanted: object) -> list[float]:
        """When a point was passed, to a tenth of a second."""
        return [
            round(when, 1)
            for when, heard, details in self.heard
            if heard is point and wanted.items() <= details.items()
        ]
