"""``python -m tools.suite.repeat``: runs tests many times, also beside busy processes.

scripts/repeat_tests                              the default suite, 20 times
scripts/repeat_tests --times 10 --busy 4          beside four processes that compute all the time
scripts/repeat_tests --times 5 --group interop    the interop group, as CI runs it
scripts/repeat_tests --times 50 -- tests/client/cli/test_commands.py -k waited_for
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tools.suite.groups import DEFAULT, INTEROP, SLOW, SuiteGroup
from tools.suite.outcome import CaseVerdict
from tools.suite.pytest_run import INTERRUPTED
from tools.suite.running import SuiteInterruptedError, run_groups, split

# Computes until the process that started it has ended.
_BUSY: Final = """\
import os, sys
parent = int(sys.argv[1])
while os.getppid() == parent:
    sum(range(1_000_000))
"""
_ANY: Final = SuiteGroup("arguments", "", is_spread=False)
_GROUPS: Final[dict[str, tuple[SuiteGroup, ...]]] = {
    "default": DEFAULT,
    "slow": SLOW,
    "interop": INTEROP,
}


@dataclass(slots=True)
class RunTally:
    """The results of the runs so far.

    Attributes:
        green: number of runs in which every test passed or was skipped.
        failures: how often each test failed.
        seconds: how long each run took.
    """

    green: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """Yield the result: how many runs were green, how long they took, which tests failed how often."""
        count = len(self.seconds)
        yield f"{self.green} of {count} runs green"
        if count:
            middle = statistics.median(self.seconds)
            yield f"seconds a run: {min(self.seconds):.0f} to {max(self.seconds):.0f}, median {middle:.0f}"
        for test, times in self.failures.most_common():
            yield f"failed {times} of {count}: {test}"


def main(words: Sequence[str]) -> int:
    """Repeat what the arguments say; return 0 only if every run was green."""
    parser = argparse.ArgumentParser(
        prog="scripts/repeat_tests", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=_count, default=20, help="how many runs (default: 20)")
    parser.add_argument(
        "--busy",
        type=int,
        default=0,
        help="number of busy processes beside the tests (default: 0)",
    )
    parser.add_argument(
        "--group",
        choices=sorted(_GROUPS),
        default="default",
        help="which group to run (default: default)",
    )
    parser.add_argument("arguments", nargs="*", help="arguments for pytest, after --, instead of a group")
    options = parser.parse_args(words)
    groups = (_ANY,) if options.arguments else _GROUPS[options.group]
    able, unable = split(groups)
    for gap in unable:
        print(gap.line(), file=sys.stderr)
    tally = RunTally()
    try:
        with busy_processes(options.busy):
            for number in range(1, options.times + 1):
                run_once(able, options.arguments, tally)
                print(f"run {number} of {options.times}: {tally.seconds[-1]:.0f} s; ", end="")
                print(*tally.lines(), sep="\n", flush=True)
    except (SuiteInterruptedError, KeyboardInterrupt):
        print(*tally.lines(), sep="\n")
        return INTERRUPTED
    return 0 if tally.green == options.times else 1


def run_once(groups: Sequence[SuiteGroup], arguments: Sequence[str], tally: RunTally) -> None:
    """Run the groups once and add the results; keep and print the output only if a run fails."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="rewindmq-repeat-") as directory:
        log = Path(directory) / "output"
        results = run_groups(groups, ("-q", *arguments), log)
        tally.seconds.append(time.monotonic() - started)
        failed = [
            outcome.test
            for result in results
            for outcome in result.outcomes
            if outcome.verdict is CaseVerdict.FAILED
        ]
        codes = {result.group.name: result.code for result in results if result.code}
        if codes:
            print(log.read_text(errors="replace"), flush=True)
        tally.failures.update(failed or [f"{name}: exit code {code}" for name, code in codes.items()])
        tally.green += not codes


@contextlib.contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Keep ``count`` processes computing as long as the block runs."""
    command = [sys.executable, "-c", _BUSY, str(os.getpid())]
    processes = [subprocess.Popen(command) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return value


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
