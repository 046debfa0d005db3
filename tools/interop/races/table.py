"""The table of ``docs/race/for_real.md``, from the histories of runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from rewindmq.race.checker import Verdict, judge
from rewindmq.race.history import History
from tools.interop.races.cell import Cell, losses_text

HEADER: Final = (
    "| race | client | resets | claimed | RocketMQ's broker | RewindMQ's broker | violations |\n"
    "|---|---|---|---|---|---|---|"
)
_PLACE: Final = " of broker-a: "


def keep(cell: Cell, history: History, error: BaseException | None, directory: Path) -> None:
    """Save the history of a cell, and its error if it could not be played."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{cell}.jsonl").write_text(history.to_lines())
    failure = directory / f"{cell}.error"
    failure.unlink(missing_ok=True)
    if error is not None:
        failure.write_text(f"{error}\n")


def table(cells: Iterable[Cell], directories: Sequence[Path]) -> str:
    """Return the table: a line per race, release and mode. Later directories replace earlier ones."""
    lines: dict[tuple[str, str, str], dict[bool, tuple[Cell, Path]]] = {}
    for cell in cells:
        for directory in directories:
            path = directory / f"{cell}.jsonl"
            if path.exists():
                line = (cell.race, cell.client, str(cell.cluster.mode))
                lines.setdefault(line, {})[cell.cluster.is_real] = (cell, path)
    return "\n".join([HEADER, *(_line(found) for found in lines.values())])


def _line(found: dict[bool, tuple[Cell, Path]]) -> str:
    cell = next(iter(found.values()))[0]
    outcomes = {is_real: _outcome(path) for is_real, (_, path) in found.items()}
    texts = [outcomes[is_real][0] if is_real in outcomes else "" for is_real in (True, False)]
    violations = outcomes.get(True, outcomes.get(False, ("", "")))[1]
    fields = [cell.race, cell.client, str(cell.cluster.mode), losses_text(cell.claimed), *texts, violations]
    return f"| {' | '.join(fields)} |"


def _outcome(path: Path) -> tuple[str, str]:
    failure = path.with_suffix(".error")
    if failure.exists():
        return "not played", failure.read_text().splitlines()[0]
    verdict = judge(History.from_lines(path.read_text()))
    return losses_text(verdict.losses), figures(verdict)


def figures(verdict: Verdict) -> str:
    """Return the texts of the violations without their queue."""
    texts = dict.fromkeys(violation.text.split(_PLACE)[-1] for violation in verdict.violations)
    return "; ".join(texts)
