"""Finds the resets of a history and their results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rewindmq.race.history import Event, Lab


@dataclass(slots=True)
class Issued:
    """One reset that the administrator requested.

    Attributes:
        started, acknowledged: indexes of events; ``acknowledged`` is None until the acknowledgement.
        is_refused: the broker refused the reset.
        is_given_up: the connection was lost; no answer will come, and the reset's effect is unknown.
        targets: one ``[broker_name, queue_id, offset]`` for each queue.
        until: index of the start of the next reset that got no answer; None if there is none. The judge stops
            there, because the effect of that reset is unknown.
    """

    started: int
    mode: str
    group: str
    topic: str
    place: list[Any]
    acknowledged: int | None = None
    is_refused: bool = False
    is_given_up: bool = False
    targets: Sequence[Sequence[Any]] = ()
    until: int | None = None

    @property
    def is_waiting(self) -> bool:
        """True if the answer may still come."""
        return self.acknowledged is None and not self.is_refused and not self.is_given_up


def issued_resets(events: Sequence[Event]) -> list[Issued]:
    """Return all resets in the order of their start."""
    resets: list[Issued] = []
    for index, event in enumerate(events):
        kind = event.kind
        if kind is Lab.RESET_STARTED:
            details = event.details
            place = [details.get(name) for name in ("broker_name", "queue_id", "offset")]
            reset = Issued(index, details["mode"], details["group"], details["topic"], place)
            resets.append(reset)
        elif kind is Lab.RESET_ACKNOWLEDGED:
            _acknowledge(resets, index, event.details)
        elif kind is Lab.RESET_REFUSED:
            waiting = next((reset for reset in resets if reset.is_waiting), None)
            if waiting is not None:
                waiting.is_given_up = event.details.get("code") is None
                waiting.is_refused = not waiting.is_given_up
    unknown = None
    for reset in reversed(resets):
        reset.until = unknown
        if reset.acknowledged is None and not reset.is_refused:
            unknown = reset.started
    return resets


def _acknowledge(resets: list[Issued], index: int, details: Any) -> None:
    """Assign an acknowledgement to the waiting reset that asked for its targets, otherwise to the oldest."""
    waiting = [reset for reset in resets if reset.is_waiting]
    targets = [list(target) for target in details["targets"]]
    if not waiting:
        return
    reset = next((reset for reset in waiting if reset.place in targets), waiting[0])
    reset.acknowledged = index
    reset.targets = targets
