"""The results of a run of the interop suite, as data.

``docs/compatibility.json`` has the results, and ``docs/compatibility.md`` presents them. They contain no
times and nothing of the machine, so two runs with the same results write the same file.
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
# A property of every test of the group, because a report's keywords also contain the names of its folders.
OF_GROUP: Final = ("group", GROUP)
# The marker of tests that the page does not list.
UNLISTED: Final = "unlisted"

WORKS: Final = "works"
FAILS: Final = "fails"
# test_clients skips with this text if the library lacks the operation; any other skip is no result.
_LACKS: Final = re.compile(r"the library has no (.+)$")
LACKS: Final = "lacks "
# A test that passed because of an explanation reports it by ``record_property(EXPLAINED, why)``.
EXPLAINED: Final = "explained"

# Module, test, parameters ("" for none), result.
Results = dict[str, dict[str, dict[str, str]]]


class ResultRecorder:
    """Collects the results of the group's tests.

    Attributes:
        results: so far.
        unseen: tests that the machine could not run, by the reason.
        is_part: whether tests of the group were collected but not run.
    """

    def __init__(self) -> None:
        self.results: Results = {}
        self.unseen: dict[str, list[str]] = {}
        self.is_part = False

    def leave_out(self, items: Iterable[pytest.Item]) -> None:
        """Record that these tests were collected but will not run."""
        self.is_part |= any(item.get_closest_marker(GROUP) is not None for item in items)

    def add(self, report: pytest.TestReport) -> None:
        """Record the result of one phase of a test; ignore tests of other groups."""
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
        # An error in a fixture's teardown comes after the test itself.
        if tests.get(parameters) != FAILS:
            tests[parameters] = shown

    def contradictions(self, committed: Results, arguments: Sequence[str]) -> list[str]:
        """Return the differences from ``committed``; for a whole run, also the tests that the run lacks.

        Args:
            arguments: the paths that were given to pytest.
        """
        directories = (TESTS, TESTS.parent)
        is_all = any(Path(argument).resolve() in directories for argument in arguments)
        return differences(self.results, committed, is_whole=is_all and not self.is_part and not self.unseen)


def _reason(report: pytest.TestReport) -> str:
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
    return text.removeprefix("Skipped: ")


def _shown(report: pytest.TestReport) -> str | None:
    """Return the result of a test, "" for no result, None for a phase that has no result yet."""
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
    """Return the results as the text of the file."""
    return json.dumps(results, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def read(path: Path = COMMITTED) -> Results:
    results: Results = json.loads(path.read_text())
    return results


def differences(results: Results, committed: Results, *, is_whole: bool) -> list[str]:
    """Return one line for each test whose results differ.

    Args:
        is_whole: a test that ``results`` lacks is a difference, too.
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
