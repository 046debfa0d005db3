"""What a verification says: one row for each check."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, NamedTuple

FORMAT: Final = 1
MAX_EXAMPLES: Final = 5
# Before the names of checks of an index, which are those of a store's own queues and index.
OUTPUT: Final = "output: "


class Severity(StrEnum):
    """What it means that a check found something."""

    # Something is lost, changed or would be served wrongly.
    ERROR = "error"
    # Odd, and worth knowing, but RocketMQ works with it.
    WARNING = "warning"
    # What every live or killed store has.
    NOTE = "note"


class _Rule(NamedTuple):
    severity: Severity
    meaning: str


_E, _W, _N = Severity.ERROR, Severity.WARNING, Severity.NOTE
RULES: Final = MappingProxyType[str, _Rule](
    {
        "log files": _Rule(_E, "commitlog/ holds segments only"),
        "log without holes": _Rule(_E, "every place of the log before its end holds a record"),
        "log tail": _Rule(_N, "nothing stands behind the last record"),
        "body CRC": _Rule(_E, "each stored body has the CRC its record states"),
        "store times": _Rule(_W, "no record has an earlier store time than the one before it"),
        "queue files": _Rule(_E, "consume queue files are of one size and follow one another"),
        "queue without holes": _Rule(_E, "no unit is missing between two others of a queue"),
        "unit order": _Rule(_E, "the units of a queue are in the order of the log"),
        "unit has a record": _Rule(_E, "each unit points to where a record begins"),
        "unit size": _Rule(_E, "a unit states its record's size"),
        "unit place": _Rule(_E, "a unit stands at its record's topic, queue and queue offset"),
        "unit tagsCode": _Rule(_E, "a unit's tagsCode is the hash of its record's tag"),
        "delivery time": _Rule(_W, "a delayed message's unit holds its delivery time (default levels)"),
        "record has a unit": _Rule(_E, "each record that is to be consumed has a unit"),
        "not dispatched yet": _Rule(_N, "every record has been dispatched to its queue"),
        "unit within the log": _Rule(_N, "no unit points behind the log's end"),
        "index file": _Rule(_E, "an index file's header and size are what its entries need"),
        "index chain": _Rule(_E, "each entry and slot names the entry before it in its slot"),
        "index entry has a record": _Rule(_E, "each index entry points to where a record begins"),
        "index key": _Rule(_E, "an index entry's hash is one of its record's keys"),
        "key has an index entry": _Rule(_W, "the keys of each record within the index have entries"),
        "consumer offset": _Rule(_E, "no stored offset lies beyond its queue's end"),
        "consumer offset expired": _Rule(_W, "no stored offset lies before its queue's first message"),
        "delay offset": _Rule(_E, "each delay level's offset lies within its queue"),
        "checkpoint": _Rule(_W, "the checkpoint names no time after the newest message"),
        "output files": _Rule(_E, "the output's files hold records, and the units that belong to them"),
        "survivor kept": _Rule(_E, "the newest message of each key is in the output"),
        "tombstone kept": _Rule(_E, "a tombstone within its grace is in the output"),
        "message kept": _Rule(_E, "a message that no rule removes is in the output"),
        "nothing superseded": _Rule(_E, "no message with a newer one of its key is in the output"),
        "nothing expired": _Rule(_E, "no tombstone behind its grace, and nothing done with, is kept"),
        "nothing invented": _Rule(_E, "each message of the output is one of the log, once"),
        "bytes kept": _Rule(_E, "a kept message's bytes are the log's, but for positions and offsets"),
        "order kept": _Rule(_E, "the messages of a queue are in the order they were in"),
        "offset map": _Rule(_E, "the offset map names the messages of the output and no others"),
        "offset translated": _Rule(_E, "a group's position means the same message as before"),
        "time index": _Rule(_E, "the time index holds each message's store time"),
        "Parquet copy": _Rule(_E, "the Parquet copy holds each record once, with its fields"),
    }
)


# What is asked of an index; the rest is asked of the store it was made from.
OF_AN_INDEX: Final = frozenset(
    name
    for name in RULES
    if name.startswith(
        ("unit", "index", "queue", "key has", "record has", "delivery", "time index", "Parquet")
    )
)


@dataclass(frozen=True, slots=True)
class Check:
    """One check of one store.

    Attributes:
        name: a key of ``RULES``, after ``OUTPUT`` where it is of an index.
        checked: how many things were looked at.
        wrong: how many of them are not as they should be.
        examples: the first wrong ones with their place; at most ``MAX_EXAMPLES``.
    """

    name: str
    checked: int
    wrong: int
    examples: tuple[str, ...] = ()

    @property
    def severity(self) -> Severity:
        """What it means when ``wrong`` is not 0; an index that was just made has no excuse."""
        name = self.name.removeprefix(OUTPUT)
        is_missing = name != self.name and name == "key has an index entry"
        return Severity.ERROR if is_missing else RULES[name].severity

    @property
    def meaning(self) -> str:
        """What should be so, in one sentence."""
        return RULES[self.name.removeprefix(OUTPUT)].meaning


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """The checks of one store, or of a store and an output made from it."""

    store: str
    out: str | None
    checks: tuple[Check, ...]

    @property
    def is_intact(self) -> bool:
        """Whether no check of severity ERROR found anything."""
        return not any(check.wrong and check.severity is Severity.ERROR for check in self.checks)

    def findings(self, severity: Severity | None = None) -> list[Check]:
        """The checks that found something."""
        return [
            check for check in self.checks if check.wrong and (severity is None or check.severity is severity)
        ]

    def to_json(self) -> dict[str, Any]:
        """As ``docs/pipeline/verify.md`` describes it."""
        return {
            "format": FORMAT,
            "store": self.store,
            "out": self.out,
            "isIntact": self.is_intact,
            "checks": [
                {
                    "name": check.name,
                    "severity": str(check.severity),
                    "meaning": check.meaning,
                    "checked": check.checked,
                    "wrong": check.wrong,
                    "examples": list(check.examples),
                }
                for check in self.checks
            ],
        }


def render_text(report: VerifyReport) -> str:
    """The report for a terminal: a table of the checks, then what was found."""
    width = max((len(check.name) for check in report.checks), default=0)
    lines = [f"{'check':<{width}}  {'checked':>12}  {'wrong':>9}  result"]
    for check in report.checks:
        result = str(check.severity) if check.wrong else "ok"
        lines.append(f"{check.name:<{width}}  {check.checked:>12,}  {check.wrong:>9,}  {result}")
    for check in report.findings():
        lines += ["", f"{check.severity}: {check.name}: not so that {check.meaning}"]
        lines += [f"  {example}" for example in check.examples]
        if check.wrong > len(check.examples):
            lines.append(f"  and {check.wrong - len(check.examples):,} more")
    lines += ["", _verdict(report)]
    return "\n".join(lines) + "\n"


def _verdict(report: VerifyReport) -> str:
    subject = f"{report.store} and {report.out}" if report.out is not None else report.store
    errors = sum(check.severity is Severity.ERROR for check in report.findings())
    if errors:
        return f"{errors} of {len(report.checks)} checks found errors in {subject}"
    others = len(report.findings())
    notes = f"; {others} found what is worth knowing" if others else ""
    return f"{len(report.checks)} checks found no error in {subject}{notes}"


class Tally:
    """Counts of checks by store, with the first examples of each."""

    def __init__(self) -> None:
        self._rows: dict[tuple[int, str], list[int]] = {}
        self._examples: dict[tuple[int, str], list[tuple[int, str]]] = {}

    def add(
        self,
        store: int,
        name: str,
        checked: int,
        wrong: int = 0,
        examples: Iterable[tuple[int, str]] = (),
    ) -> None:
        """Count.

        Args:
            store: index of the store.
            examples: of the wrong ones, some; each with its rank: the lowest are shown.
        """
        assert name in RULES
        assert wrong <= checked
        row = self._rows.setdefault((store, name), [0, 0])
        row[0] += checked
        row[1] += wrong
        if wrong:
            known = self._examples.setdefault((store, name), [])
            known += examples
            known.sort()
            del known[MAX_EXAMPLES:]

    def rows(self) -> list[tuple[int, str, int, int, list[int], list[str]]]:
        """For sending on: store, name, checked, wrong, the examples' ranks and texts."""
        found = []
        for (store, name), (checked, wrong) in self._rows.items():
            examples = self._examples.get((store, name), [])
            ranks, texts = [rank for rank, _ in examples], [text for _, text in examples]
            found.append((store, name, checked, wrong, ranks, texts))
        return found

    def add_rows(self, rows: Iterable[Sequence[Any]]) -> None:
        """Count what another tally's ``rows`` tell."""
        for store, name, checked, wrong, ranks, texts in rows:
            self.add(store, name, checked, wrong, zip(ranks, texts, strict=True))

    def checks(self, store: int) -> tuple[Check, ...]:
        """The checks of one store, in the order of ``RULES``."""
        mine: Mapping[str, list[int]] = {
            name: row for (number, name), row in self._rows.items() if number == store
        }
        return tuple(
            Check(
                name,
                mine[name][0],
                mine[name][1],
                tuple(text for _, text in self._examples.get((store, name), [])),
            )
            for name in RULES
            if name in mine
        )
