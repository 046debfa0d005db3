"""Writes the tables of docs/event_loop.md."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tools.worst_frames.measuring import FrameHold

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "event_loop.md"
BUDGET_MS: Final = 50.0

_HEADING: Final = (
    "| request | frame and tables | longest hold | bystander's wait | worker |\n|---|---|---|---|---|"
)


def table(holds: Sequence[FrameHold]) -> str:
    """Return a table, the longest hold first."""
    rows = sorted(holds, key=lambda hold: -hold.hold_ms)
    return "\n".join([_HEADING, *map(_row, rows)])


def replaced(page: str, tables: Mapping[str, str]) -> str:
    """Return the page with other tables: title to text, between the comments that name them."""
    for title, text in tables.items():
        begin, end = f"<!-- {title} -->", f"<!-- end of {title} -->"
        assert begin in page, f"{PAGE.name} has no place for the {title}"
        page = re.sub(
            f"{re.escape(begin)}.*{re.escape(end)}", f"{begin}\n{text}\n{end}", page, flags=re.DOTALL
        )
    return page


def _row(hold: FrameHold) -> str:
    name = hold.name if hold.code is not None else "–"
    wait = "–" if hold.code is None else _ms(hold.wait_ms)
    mark = "**" if hold.hold_ms > BUDGET_MS else ""
    worker = _ms(hold.worker_ms) if hold.worker_ms else "–"
    return f"| {name} | {hold.text or 'one entry'} | {mark}{_ms(hold.hold_ms)}{mark} | {wait} | {worker} |"


def _ms(milliseconds: float) -> str:
    return f"{milliseconds:,.0f}" if milliseconds >= 10 else f"{milliseconds:.1f}"
