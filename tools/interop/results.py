"""What a run of the interop suite has shown, as data.

``docs/compatibility.json`` holds it, ``docs/compatibility.md`` tells it. It has nothing of the moment or the
machine in it, so that two runs that show the same write the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
TESTS: Final = ROOT / "tests" / "interop"
COMMITTED: Final = ROOT / "docs" / "compatibility.json"
GROUP: Final = "interop"
# A property of every test of the group: a report's keywords have the names of its folders, too.
OF_GROUP: Final = ("group", GROUP)
# The marker of tests of the group that the page does not list.
UNLISTED: Final = "unlisted"

WORKS: Final = "works"
FAILS: Final = "fails"
# Skipped since the library has no such operation, as test_clients says it; any other skip shows nothing.
_LACKS: Final = re.compile(r"the library has no (.+)$")
LACKS: Final = "lacks "
# A test that passed thanks to an explanation says so by ``record_property(EXPLAINED, why)``.
EXPLAINED: Final = "explained"

# Module, test, parameters ("" for none), what came of it.
Results = dict[str, dict[str, dict[str, str]]]


class Recorder:
    """Collects what the tests of this group show.

    Attributes:
        results: so far.
        unseen: tests that were not run for a reason of the machine's, by the reason.
        is_part: whether tests of the group were collected and not run.
    """

    def __init__(self) -> None:
        self.results: Results = {}
        self.unseen: dict[str, list[str]] = {}
        self.is_part = False

    def leave_out(self, items: Iterable[pytest.Item]) -> None:
        """Take note of tests that were collected and are not to be run."""
        self.is_part |= any(item.get_closest_marker(GROUP) is not None for item in items)

    def add(self, report: pytest.TestReport) -> None:
        """Take down what one stage of a test has shown; tests of other groups are passed over."""
        path, _, name = report.nodeid.partition("::")
        shown = _shown(report)
        if OF_GROUP not in report.user_properties or shown is None:
            return
        if not shown:
            self.unseen.setdefault(_reason(report), []).append(report.nodeid)
            return
        function, _, parameters = name.partition("[")
        tests = self.results.setdefault(Path(path).stem, {}).setdefault(function, {})
        parameters = parameters.removesuffix("]")
        # An error in a fixture's end comes after the test itself.
        if tests.get(parameters) != FAILS:
            tests[parameters] = shown

    def contradictions(self, committed: Results, arguments: Sequence[str]) -> list[str]:
        """Where the run and ``committed`` differ: in what was shown, or, of a whole run, in anything.

        Args:
            arguments: the paths that pytest was asked for.
        """
        directories = (TESTS, TESTS.parent)
        is_all = any(Path(argument).resolve() in directories for argument in arguments)
        return differences(self.results, committed, is_whole=is_all and not self.is_part and not self.unseen)


def _reason(report: pytest.TestReport) -> str:
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
    return text.removeprefix("Skipped: ")


def _shown(report: pytest.TestReport) -> str | None:
    """What a test has shown; "" for nothing, None for a stage of it that says nothing yet."""
    if report.failed:
        return FAILS
    if report.skipped:
        lacks = _LACKS.search(_reason(report))
        return f"{LACKS}{lacks[1]}" if lacks else ""
    if report.when != "call":
        return None
    reasons = sorted({str(value) for key, value in report.user_properties if key == EXPLAINED})
    return f"{WORKS}: {'; '.join(reasons)}" if reasons else WORKS


def written(results: Results) -> str:
    """The file that holds them."""
    return json.dumps(results, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def read(path: Path = COMMITTED) -> Results:
    results: Results = json.loads(path.read_text())
    return results


def differences(results: Results, committed: Results, *, is_whole: bool) -> list[str]:
    """One line for each test of which the two tell different things.

    Args:
        is_whole: what ``results`` does not have is a difference, too.
    """
    shown, claimed = dict(_flat(results)), dict(_flat(committed))
    return [
        f"{test}: {shown.get(test, 'not there')}, committed: {claimed.get(test, 'not there')}"
        for test in sorted(shown.keys() | claimed.keys() if is_whole else shown)
        if shown.get(test) != claimed.get(test)
    ]


def _flat(results: Results) -> Iterable[tuple[str, str]]:
    for module, functions in results.items():
        for function, tests in functions.items():
            for parameters, shown in tests.items():
                yield f"{module}::{function}[{parameters}]" if parameters else f"{module}::{function}", shown
