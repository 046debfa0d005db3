"""Command line of ``scripts/test``: runs groups of tests, and checks types while they run.

    scripts/test                 the default group, a file at a time in each of up to four processes
    scripts/test --chosen        the chosen part of the long and interop groups, as CI runs it
    scripts/test --full          everything: default, long and interop, every seed and case; hours
    scripts/test --long          the long group with every seed and case
    scripts/test --interop       the interop group: unmodified clients with RewindMQ and RocketMQ
    scripts/test GROUP ARGS...   a group with more arguments for pytest: scripts/test --chosen -k races
    scripts/test ARGS...         pytest with these arguments, in one process: scripts/test tests/broker -x

docs/testing.md describes the groups, and how CI's part of them is chosen.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

from tools.suite.groups import CHOSEN, DEFAULT, FULL, INTEROP, LONG, SuiteGroup
from tools.suite.pytest_run import INTERRUPTED
from tools.suite.running import SuiteInterruptedError, run_groups, split
from tools.suite.summary import NotRun, exit_code, summary
from tools.suite.type_check import TypeCheck, checking_types

_EVERY_CASE: Final = ("--full",)
# The groups that each option runs, and the options that it adds for pytest.
_OPTIONS: Final[dict[str, tuple[tuple[SuiteGroup, ...], tuple[str, ...]]]] = {
    "--chosen": (CHOSEN, ()),
    "--full": (FULL, _EVERY_CASE),
    "--long": (LONG, _EVERY_CASE),
    "--interop": (INTEROP, _EVERY_CASE),
}
_FAILED: Final = 1


def main(words: Sequence[str]) -> int:
    """Run what the arguments say, print the summary, return the exit code."""
    if words and words[0] in ("-h", "--help"):
        print(__doc__)
        return 0
    groups, more, rest = _choose(words)
    able, unable = split(groups) if groups else ([], [])
    if unable and os.environ.get("CI"):
        print(*(gap.line() for gap in unable), sep="\n", file=sys.stderr)
        return _FAILED
    with checking_types() as types:
        if not groups:
            code = subprocess.run([sys.executable, "-m", "pytest", *rest], check=False).returncode
            type_code = types.report()
            return code or type_code
        return _run(able, unable, (*more, *rest), types)


def _run(
    groups: Sequence[SuiteGroup], not_run: Sequence[NotRun], arguments: Sequence[str], types: TypeCheck
) -> int:
    """Run the groups, print the errors of the type check and the summary, return the exit code."""
    try:
        results = run_groups(groups, arguments)
        type_code = types.report()
    except (SuiteInterruptedError, KeyboardInterrupt):
        return INTERRUPTED
    print("", *summary(results, not_run), sep="\n")
    return exit_code(results) or type_code


def _choose(words: Sequence[str]) -> tuple[list[SuiteGroup], list[str], list[str]]:
    """Return the groups, the options to add for pytest, and the other words."""
    if not words:
        return list(DEFAULT), [], []
    groups: list[SuiteGroup] = []
    more: list[str] = []
    rest = list(words)
    while rest and rest[0] in _OPTIONS:
        chosen, added = _OPTIONS[rest.pop(0)]
        groups += [group for group in chosen if group not in groups]
        more += [word for word in added if word not in more]
    return groups, more, rest


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
