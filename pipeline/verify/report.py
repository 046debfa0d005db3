"""The report of a verification: one row per check."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from rewindmq.protocol.text import escape_lines

FORMAT: Final = 1
MAX_EXAMPLES: Final = 5
# Prefix of the checks of an index output, which otherwise have the names of a store's own checks.
OUTPUT: Final = "output: "


class Severity(StrEnum):
    """Severity of a check that found something."""

    # Data is lost or changed, or a broker would serve it wrongly.
    ERROR = "error"
    # Unusual, but RocketMQ works with it.
    WARNING = "warning"
    # Normal for a live or killed store.
    NOTE = "note"


class _Rule(NamedTuple):
    severity: Severity
    meaning: str


_E, _W, _N = Severity.ERROR, Severity.WARNING, Severity.NOTE
RULES: Final = MappingProxyType[str, _Rule](
    {
        "log files": _Rule(_E, "commitlog/ contains only segments"),
        "log without holes": _Rule(_E, "records fill the log up to its end"),
        "log tail": _Rule(_N, "nothing follows the last record"),
        "body CRC": _Rule(_E, "each stored body matches the CRC that its record states"),
        "store times": _Rule(_W, "no record has an earlier store time than the record before"),
        "queue files": _Rule(_E, "consume queue files have one size and consecutive positions"),
        "queue without holes": _Rule(_E, "no entry is missing between two entries of a queue"),
        "queue entry order": _Rule(_E, "the entries of a queue are in the order of the log"),
        "queue entry has a record": _Rule(_E, "each entry points to the start of a record"),
        "queue entry size": _Rule(_E, "an entry states its record's size"),
        "queue entry place": _Rule(_E, "an entry is at its record's topic, queue and queue offset"),
        "queue entry tagsCode": _Rule(_E, "an entry's tagsCode is the hash of its record's tag"),
        "delivery time": _Rule(_W, "a delayed message's entry has its delivery time (default levels)"),
        "record has a queue entry": _Rule(_E, "each record that consumers can receive has an entry"),
        "not dispatched yet": _Rule(_N, "every record has a queue entry"),
        "queue entry within the log": _Rule(_N, "no entry points beyond the log's end"),
        "index file": _Rule(_E, "header and size of an index file match its entries"),
        "index chain": _Rule(_E, "each entry names the previous entry of its slot, each slot its newest"),
        "index entry has a record": _Rule(_E, "each index entry points to the start of a record"),
        "index key": _Rule(_E, "an index entry's hash is that of one of its record's keys"),
        "key has an index entry": _Rule(_W, "the keys of each record within the index have entries"),
        "consumer offset": _Rule(_E, "no stored offset is beyond its queue's end"),
        "consumer offset expired": _Rule(_W, "no stored offset is before its queue's first message"),
        "delay offset": _Rule(_E, "each delay level's offset is within its queue"),
        "checkpoint": _Rule(_W, "the checkpoint has no time later than the newest message"),
        "output files": _Rule(_E, "the output's files contain records and matching queue entries"),
        "survivor kept": _Rule(_E, "the newest message of each key is in the output"),
        "tombstone kept": _Rule(_E, "a tombstone within its grace is in the output"),
        "message kept": _Rule(_E, "a message that no rule removes is in the output"),
        "nothing superseded": _Rule(_E, "no message with a newer one of its key is in the output"),
        "nothing expired": _Rule(_E, "no tombstone past its grace and no finished message is in the output"),
        "nothing invented": _Rule(_E, "each message of the output is in the log, and once in the output"),
        "bytes kept": _Rule(_E, "a kept message's bytes are unchanged, except positions and offsets"),
        "order kept": _Rule(_E, "the messages of a queue keep their order"),
        "offset map": _Rule(_E, "the offset map has exactly the messages of the output"),
        "offset translated": _Rule(_E, "a group's offset means the same message as before"),
        "time index": _Rule(_E, "the time index has each message's store time"),
        "Parquet copy": _Rule(_E, "the Parquet copy has each record once, with its fields"),
    }
)


# Checks of an index output; the other checks apply to the store itself.
OF_AN_INDEX: Final = frozenset(
    name
    for name in RULES
    if name.startswith(("index", "queue", "key has", "record has", "delivery", "time index", "Parquet"))
)


@dataclass(frozen=True, slots=True)
class Check:
    """One check of one store.

    Attributes:
        name: a key of ``RULES``; for an index output, with the prefix ``OUTPUT``.
        checked: number of items checked.
        wrong: number of items that violate the rule.
        examples: the first violations with their place; at most ``MAX_EXAMPLES``.
    """

    name: str
    checked: int
    wrong: int
    examples: tuple[str, ...] = ()

    @property
    def severity(self) -> Severity:
        """Severity of a failed check; a missing key is an error in an index output: it must be complete."""
        name = self.name.removeprefix(OUTPUT)
        is_missing = name != self.name and name == "key has an index entry"
        return Severity.ERROR if is_missing else RULES[name].severity

    @property
    def meaning(self) -> str:
        """The rule, in one sentence."""
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
        """Return the checks that found something, optionally of one severity."""
        return [
            check for check in self.checks if check.wrong and (severity is None or check.severity is severity)
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON that ``docs/pipeline/verify.md`` describes."""
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
    """Render the report for a terminal: a table of the checks, then the findings."""
    width = max((len(check.name) for check in report.checks), default=0)
    lines = [f"{'check':<{width}}  {'checked':>12}  {'wrong':>9}  result"]
    for check in report.checks:
        result = str(check.severity) if check.wrong else "ok"
        lines.append(f"{check.name:<{width}}  {check.checked:>12,}  {check.wrong:>9,}  {result}")
    for check in report.findings():
        lines += ["", f"{check.severity}: {check.name}: expected: {check.meaning}"]
        lines += [f"  {example}" for example in check.examples]
        if check.wrong > len(check.examples):
            lines.append(f"  and {check.wrong - len(check.examples):,} more")
    lines += ["", _verdict(report)]
    return escape_lines(lines) + "\n"


def _verdict(report: VerifyReport) -> str:
    subject = f"{report.store} and {report.out}" if report.out is not None else report.store
    errors = sum(check.severity is Severity.ERROR for check in report.findings())
    if errors:
        return f"{errors} of {len(report.checks)} checks found errors in {subject}"
    others = len(report.findings())
    notes = f"; {others} found warnings or notes" if others else ""
    return f"{len(report.checks)} checks found no error in {subject}{notes}"


class Tally:
    """Counts of the checks by store, with the first examples of each."""

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
        """Add to the counts of a check.

        Args:
            store: index of the store.
            examples: some of the violations, each with its rank; those with the lowest ranks are shown.
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
        """Return rows to send to the driver: store, name, checked, wrong, ranks and texts of the examples."""
        found = []
        for (store, name), (checked, wrong) in self._rows.items():
            examples = self._examples.get((store, name), [])
            ranks, texts = [rank for rank, _ in examples], [text for _, text in examples]
            found.append((store, name, checked, wrong, ranks, texts))
        return found

    def add_rows(self, rows: Iterable[Sequence[Any]]) -> None:
        """Add the ``rows`` of another tally."""
        for store, name, checked, wrong, ranks, texts in rows:
            self.add(store, name, checked, wrong, zip(ranks, texts, strict=True))

    def checks(self, store: int) -> tuple[Check, ...]:
        """Return the checks of one store, in the order of ``RULES``."""
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
