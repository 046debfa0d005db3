"""Stored offset and redelivery over time, for the report's chart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from rewindmq.race.checker.case import QueueCase
from rewindmq.race.checker.judge import HANDOVER_SECONDS, choose_reset, make_cases
from rewindmq.race.checker.reading import Reading
from rewindmq.race.checker.verdict import JudgeFrom
from rewindmq.race.history import Event


class ProgressChange(NamedTuple):
    """A change of the stored offset or of the redelivery.

    Attributes:
        event_index: index in the history of the event that made the change.
        stored: the stored offset; None while it is unknown.
        finished_until: end of the messages redelivered and finished from the target on; None before the
            reset took effect.
    """

    at: float
    event_index: int
    stored: int | None
    finished_until: int | None


@dataclass(frozen=True, slots=True)
class QueueProgress:
    """The changes of one queue.

    Attributes:
        end: one past the last known message.
    """

    broker_name: str
    topic: str
    queue_id: int
    target: int
    end: int
    moments: tuple[ProgressChange, ...]


def progress(
    history: Iterable[Event], *, judge_from: JudgeFrom | None = None, reset: int = -1
) -> list[QueueProgress]:
    """Return the progress of every queue in the reset's targets; empty if no reset was acknowledged.

    Raises:
        RaceError: as ``judge``.
    """
    events = list(history)
    issued = choose_reset(events, reset)
    if issued is None:
        return []
    cases = make_cases(events, issued, judge_from, HANDOVER_SECONDS)
    assert issued.acknowledged is not None
    reading = Reading(cases, issued.started, issued.acknowledged)
    moments: dict[QueueCase, list[ProgressChange]] = {case: [] for case in cases.values()}
    for index, event in enumerate(events):
        reading.read(events, index + 1, index)
        for case, known in moments.items():
            finished_until = case.finished_until if case.is_effective else None
            moment = ProgressChange(event.at, index, case.stored, finished_until)
            if moment[2:] != (known[-1][2:] if known else (None, None)):
                known.append(moment)
    return [
        QueueProgress(place[1], place[2], place[3], case.target, case.end, tuple(moments[case]))
        for place, case in cases.items()
    ]
