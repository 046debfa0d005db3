"""Waits until a run is at rest, so that the judge sees everything that it causes."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.points import Point
from rewindmq.race.history import Event, Lab
from rewindmq.race.stage.stage import TOPIC, Stage

# A rebalance comes every 20 s, a pull is suspended for 20 s at most, a correction is delayed by 10 s.
QUIET_SECONDS: Final = 32.0
MAX_SECONDS: Final = 90.0
_STEP_SECONDS: Final = 4.0
_SHORTEST_STEP_SECONDS: Final = 0.001
_MOVING: Final = frozenset(
    {
        Point.LISTENER_CALLED,
        Point.LISTENER_RETURNED,
        Point.OFFSET_RESET,
        Point.QUEUE_ADDED,
        Point.QUEUE_DROPPED,
        Point.QUEUE_REMOVED,
        Point.QUEUE_RESTARTED,
        Lab.PROCESS_KILLED,
        Lab.PROCESS_STOPPED,
        Lab.RESET_ACKNOWLEDGED,
    }
)


async def settle(stage: Stage) -> None:
    """Wait until nothing has moved for 32 protocol seconds; wait 90 s at most."""
    began = stage.now
    while stage.now - began < MAX_SECONDS:
        quiet = stage.now - max(began, _last_move(stage))
        if quiet >= QUIET_SECONDS:
            return
        # A wait shorter than the clock's resolution would never end.
        await stage.sleep(max(_SHORTEST_STEP_SECONDS, min(_STEP_SECONDS, QUIET_SECONDS - quiet)))


def _last_move(stage: Stage) -> float:
    history = stage.history
    for index in range(len(history) - 1, -1, -1):
        if _moves(history[index]):
            return history[index].at
    return 0.0


def _moves(event: Event) -> bool:
    if event.details.get("topic", TOPIC) != TOPIC:
        # The group's retry topic is not part of the race.
        return False
    if event.kind is Point.COMMIT_RECEIVED:
        # Consumers repeat their commits every 5 s.
        return event.details.get("offset") != event.details.get("stored")
    return event.kind in _MOVING
