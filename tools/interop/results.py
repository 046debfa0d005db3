"""What a run of the interop suite has shown, as data.

``docs/compatibility.json`` holds it, ``docs/compatibility.md`` tells it. Nothing of the moment or the
machine is in it, so that two runs that show the same write the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
TESTS: Final = ROOT / "tests" / "interop"
COMMITTED: Final = ROOT / "docs" / "compatibility.json"

WORKS: Final = "works"
FAILS: Final = "fails"
# Skipped since the library has no such operation, as test_clients says it; any other skip shows nothing.
_LACKS: Final = re.compile(r"the library has no (.+)$")
LACKS: Final = "lacks "
# A test that passed thanks to an explanation says so by ``record_property(EXPLAINED, why)``.
EXPLAINED: Final = "explained"

# Scenarios that failed or differed while everything else went on, and how; shown at the session's end.
PLAYED_AGAIN: Final[list[str]] = []

# Module, test, parameters ("" for none), what came of it.
Results = dict[str, dict[str, dict[str, str]]]


class Recorder:
    """Collects what the tests of this directory show.

    Attributes:
        results: so far.
        unseen: tests that were skipped for a reason of the machine's.
    """

    def __init__(self) -> None:
        self.results: Results = {}
        self.unseen: list[str] = []

    def add(self, report: pytest.TestReport) -> None:
        """Take down what one stage of a test has shown; tests of other directories are passed over."""
        path, _, name = report.nodeid.partition("::")
        shown = _shown(report)
        if Path(path).parent.name != TESTS.name or shown is None:
            return
        if not shown:
            self.unseen.append(report.nodeid)
            return
        function, _, parameters = name.partition("[")
        tests = self.results.setdefault(Path(path).stem, {}).setdefault(function, {})
        parameters = parameters.removesuffix("]")
        # An error in a fixture's end comes after the test itself.
        if tests.get(parameters) != FAILS:
            tests[parameters] = shown


def _shown(report: pytest.TestReport) -> str | None:
    """What a test has shown; "" for nothing, None for a stage of it that says nothing yet."""
    if report.failed:
        return FAILS
    if report.skipped:
        text = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        lacks = _LACKS.search(text)
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


def differences(results: Results, committed: Results) -> list[str]:
    """One line for each test of which the two tell different things."""
    shown, claimed = dict(_flat(results)), dict(_flat(committed))
    return [
        f"{test}: {shown.get(test, 'not there')}, committed: {claimed.get(test, 'not there')}"
        for test in sorted(shown.keys() | claimed.keys())
        if shown.get(test) != claimed.get(test)
    ]


def _flat(results: Results) -> Iterable[tuple[str, str]]:
    for module, functions in results.items():
        for function, tests in functions.items():
            for parameters, shown in tests.items():
                yield f"{module}::{function}[{parameters}]" if parameters else f"{module}::{function}", shown


def is_whole(config: pytest.Config) -> bool:
    """Whether a run is of the whole suite: only then is what it shows what there is."""
    options = config.option
    directories = (TESTS, TESTS.parent)
    return (
        options.markexpr == "interop"
        and not options.keyword
        and not options.deselect
        and not getattr(options, "lf", False)
        and any(Path(argument).resolve() in directories for argument in config.args)
    )
