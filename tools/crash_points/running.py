"""Distributes power failures over all points of all workloads."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from random import Random

from tools.crash_points.crash import CrashPoint, crash
from tools.crash_points.law import LawError
from tools.crash_points.operations import Operation
from tools.crash_points.recording import WorkloadRecording, record
from tools.crash_points.workloads import Workload


@dataclass(frozen=True, slots=True)
class Cut:
    """One power failure.

    Attributes:
        point: number of operations before it.
        choice: seed of what survives.
    """

    workload: str
    seed: int
    point: int
    choice: int

    @property
    def command(self) -> str:
        """The command that repeats it."""
        return (
            f"./scripts/crash_points --workload {self.workload} --seed {self.seed}"
            f" --replay {self.point}:{self.choice}"
        )


@dataclass(frozen=True, slots=True)
class Failure:
    """A power failure after which the law did not hold."""

    cut: Cut
    reason: str
    operation: Operation | None


def _never(operation: Operation) -> bool:
    return False


def record_all(
    workloads: Sequence[Workload], seed: int, is_dropped: Callable[[Operation], bool] = _never
) -> list[WorkloadRecording]:
    """Run every workload once."""
    with quiet_logs():
        return [record(workload, seed, is_dropped) for workload in workloads]


def cuts(
    recordings: Sequence[WorkloadRecording], seed: int, count: int
) -> Iterator[tuple[WorkloadRecording, Cut]]:
    """Yield ``count`` power failures: as many at each point of each workload, as far as that is possible."""
    ends = list(accumulate(len(recording.journal) for recording in recordings))
    start = 0
    previous, choice = (-1, -1), 0
    places = ((number * ends[-1]) // count for number in range(count))
    number = 0
    for place in places:
        while place >= ends[number]:
            start = ends[number]
            number += 1
        point = place - start + 1
        choice = choice + 1 if previous == (number, point) else 0
        previous = (number, point)
        yield recordings[number], Cut(recordings[number].workload.name, seed, point, choice)


def run(
    recordings: Sequence[WorkloadRecording], seed: int, count: int, on_cut: Callable[[Failure | None], bool]
) -> None:
    """Cut the power ``count`` times.

    Args:
        on_cut: called after each failure of the power; returns False to stop.
    """
    current: CrashPoint | None = None
    with quiet_logs():
        for recording, cut in cuts(recordings, seed, count):
            if current is None or current.recording is not recording:
                current = CrashPoint.begin(recording)
            current.go_to(cut.point)
            if not on_cut(_try(current, cut)):
                return


def replay(recording: WorkloadRecording, seed: int, point: int, choice: int) -> Failure | None:
    """Repeat one power failure."""
    current = CrashPoint.begin(recording)
    current.go_to(point)
    with quiet_logs():
        return _try(current, Cut(recording.workload.name, seed, point, choice))


def _try(current: CrashPoint, cut: Cut) -> Failure | None:
    chance = Random(f"{cut.seed} {cut.workload} {cut.point} {cut.choice}")
    try:
        crash(current, chance)
    except LawError as error:
        reason = str(error)
    except Exception as error:
        # A bug of the broker: the restart must not fail with any other error.
        reason = f"{type(error).__name__}: {error}"
    else:
        return None
    journal = current.recording.journal
    return Failure(cut, reason, journal[cut.point - 1] if cut.point else None)


@contextmanager
def quiet_logs() -> Iterator[None]:
    """Silence the brokers' logs: each restart reports its damage."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
