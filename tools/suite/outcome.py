"""The outcome of one test, as a pytest process writes it for another program."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class CaseVerdict(StrEnum):
    """How a test ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class SuiteOutcome:
    """The outcome of one test.

    Attributes:
        test: pytest's node id.
        seconds: of its set-up, call and tear-down together.
        reason: why it was skipped; "" otherwise.
    """

    test: str
    verdict: CaseVerdict
    seconds: float
    reason: str = ""

    def as_fields(self) -> Mapping[str, object]:
        """Return the fields of the JSON line."""
        return {
            "test": self.test,
            "verdict": self.verdict,
            "seconds": round(self.seconds, 3),
            "reason": self.reason,
        }


def read_outcomes(path: Path) -> Iterator[SuiteOutcome]:
    """Yield the outcomes that a run has written; none if pytest ended before it wrote."""
    if not path.exists():
        return
    for line in path.read_text().splitlines():
        fields = json.loads(line)
        yield SuiteOutcome(
            fields["test"], CaseVerdict(fields["verdict"]), fields["seconds"], fields["reason"]
        )
