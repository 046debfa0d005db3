"""Prints a job's summary as aligned text or as JSON."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from rewindmq.pipeline.figures import format_bytes
from rewindmq.protocol.text import escape_json, escape_lines

# Labels for JSON names that say too little on their own.
_LABELS: Final = {
    "damageCount": "damaged places",
    "queueEntries": "queue entries",
    "gapCount": "gaps in queues",
    "repeated": "repeated offsets",
    "passedOver": "records without a queue",
    "logBehind": "log not indexed",
}


def show_summary(summary: Mapping[str, Any], *, is_json: bool, next_steps: Sequence[str] = ()) -> None:
    """Print a job's summary as text or as JSON.

    Args:
        summary: names in camelCase, JSON values. As text, a list of mappings becomes a table and an empty
            list is left out. A run that found nothing new (``isNew``) is one line.
        next_steps: commands to run next; printed as text only.
    """
    if is_json:
        print(escape_json(json.dumps(summary, indent=2, ensure_ascii=False)))
        return
    is_unchanged = summary.get("isNew") is False
    lines = [f"nothing new: {summary['output']} is unchanged"] if is_unchanged else _summary_lines(summary)
    if next_steps:
        lines += ["", *(f"next: {step}" for step in next_steps)]
    print(escape_lines(lines))


def command(name: str, *arguments: str) -> str:
    """Return a ``rewindmq pipeline`` command line, quoted for a shell."""
    return shlex.join(["rewindmq", "pipeline", name, *arguments])


def _summary_lines(summary: Mapping[str, Any]) -> list[str]:
    tables = {name: value for name, value in summary.items() if _is_table(value)}
    facts = [
        (_label(name), format_bytes(value) if _is_bytes(name) else in_words(value))
        for name, value in summary.items()
        if name not in tables and name != "isNew" and value not in ([], ())
    ]
    width = max((len(name) for name, _ in facts), default=0)
    lines = [f"{name:<{width}}  {value}".rstrip() for name, value in facts]
    for name, value in tables.items():
        rows = [{_label(key): item for key, item in row.items()} for row in value]
        lines += ["", f"{_label(name)}:", *table_lines(rows)]
    return lines


def in_words(value: Any) -> str:
    """Return a JSON value as text, with thousands separators."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.3f}"
    if isinstance(value, list | tuple):
        return ", ".join(map(in_words, value)) or "-"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {in_words(item)}" for key, item in value.items()) or "-"
    return str(value)


def table_lines(rows: Sequence[Mapping[str, Any]], text: Callable[[Any], str] = in_words) -> list[str]:
    """Return rows with the same names as aligned text; numbers are flush right.

    Args:
        text: formats a value.
    """
    names = list(rows[0])
    columns = [[name, *(text(row[name]) for row in rows)] for name in names]
    is_number = [all(isinstance(row[name], int | float) for row in rows) for name in names]
    widths = [max(map(len, column)) for column in columns]
    return [
        "  ".join(
            f"{cell:>{width}}" if right else f"{cell:<{width}}"
            for cell, width, right in zip(line, widths, is_number, strict=True)
        ).rstrip()
        for line in zip(*columns, strict=True)
    ]


def _is_table(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and isinstance(value[0], Mapping)


def _is_bytes(name: str) -> bool:
    return "bytes" in name.lower() or name == "logBehind"


def _label(name: str) -> str:
    """Return ``bytesRead`` as ``bytes read``."""
    spaced = re.sub(r"(?<=[a-z0-9])([A-Z])", lambda match: f" {match[1].lower()}", name)
    return _LABELS.get(name, spaced)
