"""Command line of ``scripts/test``: runs groups of tests, and checks types while they run.

    scripts/test                  the default group, a file at a time in each of up to four processes
    scripts/test --slow           the slow group: real time, kills, many seeds, Spark
    scripts/test --interop        the interop group: unmodified clients with RewindMQ and RocketMQ
    scripts/test --slow --interop both at the same time, as CI runs them
    scripts/test --full           all groups, also what CI leaves out; hours
    scripts/test --full --slow    all of a group
    scripts/test GROUP ARGS...    a group with more arguments for pytest: scripts/test --slow -k races
    scripts/test ARGS...          pytest with these arguments, in one process: scripts/test tests/broker -x

docs/testing.md describes the groups, and what CI leaves out.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

from tools.suite.groups import DEFAULT, INTEROP, SLOW, SuiteGroup, in_full
from tools.suite.pytest_run import INTERRUPTED
from tools.suite.running import SuiteInterruptedError, run_groups, split
from tools.suite.summary import NotRun, exit_code, summary
from tools.suite.type_check import TypeCheck, checking_types

_FULL: Final = "--full"
_GROUPS: Final[dict[str, tuple[SuiteGroup, ...]]] = {"--slow": SLOW, "--interop": INTEROP}
_FAILED: Final = 1


def main(words: Sequence[str]) -> int:
    """Run what the arguments say, print the summary, return the exit code."""
    if words and words[0] in ("-h", "--help"):
        print(__doc__)
        return 0
    groups, rest = choose(words)
    able, unable = split(groups) if groups else ([], [])
    if unable and os.environ.get("CI"):
        print(*(gap.line() for gap in unable), sep="\n", file=sys.stderr)
        return _FAILED
    with checking_types() as types:
        if not groups:
            code = subprocess.run([sys.executable, "-m", "pytest", *rest], check=False).returncode
            type_code = types.report()
            return code or type_code
        return _run(able, unable, rest, types)


def _run(
    groups: Sequence[SuiteGroup], not_run: Sequence[NotRun], arguments: Sequence[str], types: TypeCheck
) -> int:
    """Run the groups, print the errors of the type check and the summary, return the exit code."""
    try:
        results = run_groups(groups, arguments, one_by_one=_FULL in arguments)
        type_code = types.report()
    except (SuiteInterruptedError, KeyboardInterrupt):
        return INTERRUPTED
    print("", *summary(results, not_run), sep="\n")
    return exit_code(results) or type_code


def choose(words: Sequence[str]) -> tuple[tuple[SuiteGroup, ...], list[str]]:
    """Return the groups, and the arguments for pytest."""
    if not words:
        return DEFAULT, []
    rest = list(words)
    names: list[str] = []
    while rest and rest[0] in (_FULL, *_GROUPS):
        names.append(rest.pop(0))
    groups = tuple(group for name, some in _GROUPS.items() if name in names for group in some)
    if _FULL not in names:
        return groups, rest
    every = tuple(group for some in (DEFAULT, *_GROUPS.values()) for group in some)
    return in_full(groups or every), [_FULL, *rest]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
