"""Shrinks a failing schedule to as few deviations from the default order as possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rewindmq.race.explore.search.job import ScheduleJob
from rewindmq.race.explore.search.pool import Pool
from rewindmq.race.explore.search.run import ScheduleOutcome

_MAX_ROUNDS: Final = 20


def shrink(pool: Pool, failing: ScheduleOutcome) -> ScheduleOutcome:
    """Leave out choices, singly and in runs, until no shorter schedule fails; return the shortest.

    The result breaks a law that ``failing`` breaks.
    """
    best = failing
    for _ in range(_MAX_ROUNDS):
        candidates = pool.run([ScheduleJob(names=names) for names in _shorter(best)])
        better = min(
            (outcome for outcome in candidates if outcome.laws & failing.laws),
            key=_size,
            default=best,
        )
        if _size(better) >= _size(best):
            return best
        best = better
    return best


def prescribed(outcome: ScheduleOutcome) -> tuple[str, ...]:
    """Return the choices up to the last deviation; all later steps follow the default order."""
    last = max((number for number, index in enumerate(outcome.taken) if index), default=-1)
    return outcome.names[: last + 1]


def _shorter(outcome: ScheduleOutcome) -> list[tuple[str, ...]]:
    names = prescribed(outcome)
    deviations = [number for number, index in enumerate(outcome.taken) if index]
    shorter = [names[:number] for number in deviations]
    shorter += [_without(names, [number]) for number in range(len(names))]
    for size in (2, 3, 4, 8):
        shorter += [_without(names, deviations[at : at + size]) for at in range(len(deviations))]
    return list(dict.fromkeys(shorter))


def _without(names: Sequence[str], numbers: Sequence[int]) -> tuple[str, ...]:
    return tuple(name for number, name in enumerate(names) if number not in numbers)


def _size(outcome: ScheduleOutcome) -> tuple[int, int]:
    return outcome.deviations, len(prescribed(outcome))
