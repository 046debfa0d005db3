"""The summary of several groups of tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tools.suite.machine import Tool
from tools.suite.outcome import CaseVerdict
from tools.suite.pytest_run import NO_TESTS, PASSED, GroupResult


@dataclass(frozen=True, slots=True)
class NotRun:
    """A group that this machine cannot run."""

    what: str
    missing: tuple[Tool, ...]

    def line(self) -> str:
        """Return one line with the missing tools and how to install each."""
        tools = "; ".join(f"{tool.title} ({tool.hint})" for tool in self.missing)
        return f"not run: {self.what}, which needs {tools}"


def exit_code(results: Iterable[GroupResult]) -> int:
    """Return pytest's worst exit code: a failure, else 0 if any group had tests."""
    codes = [result.code for result in results]
    failures = [code for code in codes if code not in (PASSED, NO_TESTS)]
    if failures:
        return max(failures)
    return PASSED if PASSED in codes else NO_TESTS


def summary(results: Sequence[GroupResult], not_run: Sequence[NotRun]) -> Iterator[str]:
    """Yield the lines of the summary; the last line counts all tests."""
    width = max((len(result.group.name) for result in results), default=0)
    total: Counter[CaseVerdict] = Counter()
    yield f"{'group':{width}}  passed  failed  skipped     time"
    for result in results:
        counts = Counter(outcome.verdict for outcome in result.outcomes)
        total += counts
        minutes, seconds = divmod(round(result.seconds), 60)
        yield (
            f"{result.group.name:{width}}  {counts[CaseVerdict.PASSED]:6}  {counts[CaseVerdict.FAILED]:6}"
            f"  {counts[CaseVerdict.SKIPPED]:7}  {minutes:4}:{seconds:02}"
        )
    reasons = Counter(
        outcome.reason
        for result in results
        for outcome in result.outcomes
        if outcome.verdict is CaseVerdict.SKIPPED
    )
    for reason, count in reasons.most_common():
        yield f"skipped {count}: {reason}"
    for result in results:
        for outcome in result.outcomes:
            if outcome.verdict is CaseVerdict.FAILED:
                yield f"failed: {outcome.test}"
        if result.code not in (PASSED, NO_TESTS) and not any(
            outcome.verdict is CaseVerdict.FAILED for outcome in result.outcomes
        ):
            yield f"{result.group.name}: pytest ended with exit code {result.code}"
    for gap in not_run:
        yield gap.line()
    yield (
        f"{total[CaseVerdict.PASSED]} passed, {total[CaseVerdict.FAILED]} failed,"
        f" {total[CaseVerdict.SKIPPED]} skipped"
    )
