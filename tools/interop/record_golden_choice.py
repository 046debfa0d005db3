"""Chooses which recorded frames are kept, and writes them to a file."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from tools.interop.record_golden_relay import BROKER, SLAVE, Captured

# How many variants are kept of one code, form, outcome, sender and receiver.
_MOST_VARIANTS: Final = 2
# The fullest body is the best example, up to this size.
_FULL_BYTES: Final = 4 << 10
_FIRST_FIELD: Final = re.compile(rb'\{"[^"]*":([\[{]*)')
# How much is kept of the log's stream: enough for a few records.
_REPLICATION_BYTES: Final = {BROKER: 8 << 10, SLAVE: 64}


def chosen(frames: Iterable[Captured]) -> list[Captured]:
    """Return the frames to keep.

    Frames with equal code, form, outcome, sender and receiver form a kind. Of each set of extension fields
    and body outline in a kind, the fullest frame is kept. At most ``_MOST_VARIANTS`` sets of a kind are kept,
    those with the most fields first.
    """
    kinds: dict[tuple[Any, ...], dict[tuple[str, ...], Captured]] = {}
    for frame in frames:
        fields = (*sorted(frame.command.ext), _outline(frame))
        variants = kinds.setdefault(_order(frame), {})
        if fields not in variants or _fullness(frame) > _fullness(variants[fields]):
            variants[fields] = frame
    kept: list[Captured] = []
    for kind in sorted(kinds):
        variants = kinds[kind]
        best = sorted(variants, key=lambda fields: (-len(fields), fields))[:_MOST_VARIANTS]
        kept += (variants[fields] for fields in best)
    return kept


def _order(frame: Captured) -> tuple[Any, ...]:
    outcome = -1 if frame.outcome is None else frame.outcome
    return frame.code, frame.form, outcome, frame.sender, frame.receiver


def _outline(frame: Captured) -> str:
    """Return the outline of a body: "" for none, ``bytes`` for no JSON, else how its first field begins."""
    body = frame.command.body
    if not isinstance(body, bytes):
        return ""
    field = _FIRST_FIELD.match(body)
    return field[1].decode() if field else "bytes"


def _fullness(frame: Captured) -> int:
    size = len(frame.command.body) if isinstance(frame.command.body, bytes) else 0
    return size if size <= _FULL_BYTES else -size


def chosen_replication(streams: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the first bytes of each direction between master and slave."""
    return {sender: data[: _REPLICATION_BYTES[sender]] for sender, data in sorted(streams.items())}


def write(
    path: Path, client: str, server: str, frames: Iterable[Captured], replication: Mapping[str, bytes]
) -> None:
    """Write one JSON object a line; the first line names the releases."""
    lines: list[dict[str, Any]] = [{"client": client, "server": server}]
    lines += (_line(frame) for frame in frames)
    lines += (
        {"replication": sender, "bytes": base64.b64encode(data).decode()}
        for sender, data in replication.items()
    )
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))


def _line(frame: Captured) -> dict[str, Any]:
    line: dict[str, Any] = {"code": frame.code, "form": frame.form}
    if frame.outcome is not None:
        line["outcome"] = frame.outcome
    line |= {"from": frame.sender, "to": frame.receiver}
    return line | {"frame": base64.b64encode(frame.data).decode()}
