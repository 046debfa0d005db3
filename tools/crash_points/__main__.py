"""``python -m tools.crash_points``: cut the power of a simulated broker and check its restart.

scripts/crash_points                          2,000 power failures, spread over all writes of all workloads
scripts/crash_points --points 100000          the same, many times at each write
scripts/crash_points --workload retention     one workload
scripts/crash_points --workload index --seed 1 --replay 214:3   one power failure again

Exit codes: 0 the law held, 1 it was broken, 2 wrong arguments.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Final

from tools.crash_points.recording import record
from tools.crash_points.running import Failure, record_all, replay, run
from tools.crash_points.workloads import WORKLOADS

_POINTS: Final = 2_000
_MAX_FAILURES: Final = 10
_BAR: Final = 30


class ProgressBar:
    """A bar on standard error; failures on standard output, at most 10."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._started = time.monotonic()
        self._done = 0
        self.failures: list[Failure] = []

    def __call__(self, failure: Failure | None) -> bool:
        self._done += 1
        if failure is not None:
            self.failures.append(failure)
            self._clear()
            print(describe(failure), flush=True)
        if sys.stderr.isatty() and (self._done % 25 == 0 or self._done == self._total):
            full = _BAR * self._done // self._total
            bar = "#" * full + "-" * (_BAR - full)
            print(f"\r[{bar}] {self._done:,} of {self._total:,}", end="", file=sys.stderr, flush=True)
        return len(self.failures) < _MAX_FAILURES

    def _clear(self) -> None:
        if sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def finish(self) -> int:
        """Print the result and return the exit code."""
        self._clear()
        seconds = time.monotonic() - self._started
        print(f"{self._done:,} power failures in {seconds:.0f} s, {len(self.failures)} failures")
        print(f"{1_000 * seconds / max(self._done, 1):.1f} ms each")
        return 1 if self.failures else 0


def describe(failure: Failure) -> str:
    """Return a failure in two lines: what is wrong, and the command that repeats it."""
    operation = type(failure.operation).__name__ if failure.operation else "the beginning"
    path = getattr(failure.operation, "path", "")
    return f"after {operation} {path}: {failure.reason}\n  {failure.cut.command}"


def main(words: Sequence[str] | None = None) -> int:
    """Run what the arguments say and return the exit code."""
    options = _parser().parse_args(words)
    workloads = [
        workload for workload in WORKLOADS if not options.workload or workload.name in options.workload
    ]
    if options.replay:
        if len(workloads) != 1:
            _parser().error("--replay needs one --workload")
        point, _, choice = options.replay.partition(":")
        failure = replay(record(workloads[0], options.seed), options.seed, int(point), int(choice))
        print("the law held" if failure is None else describe(failure))
        return 0 if failure is None else 1
    recordings = record_all(workloads, options.seed)
    for recording in recordings:
        print(f"{recording.workload.name}: {len(recording.journal):,} writes")
    progress = ProgressBar(options.points)
    run(recordings, options.seed, options.points, progress)
    return progress.finish()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scripts/crash_points", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--points", type=_count, default=_POINTS, help=f"number of power failures (default: {_POINTS})"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of all choices (default: 1)")
    parser.add_argument(
        "--workload",
        action="append",
        choices=[workload.name for workload in WORKLOADS],
        help="only this one; may be repeated (default: all)",
    )
    parser.add_argument("--replay", metavar="POINT:CHOICE", type=_place, help="repeat one power failure")
    return parser


def _count(text: str) -> int:
    count = int(text)
    if count < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return count


def _place(text: str) -> str:
    point, separator, choice = text.partition(":")
    if not (separator and point.isdecimal() and choice.isdecimal()):
        raise argparse.ArgumentTypeError("two numbers, such as 214:3")
    return text


if __name__ == "__main__":
    sys.exit(main())
