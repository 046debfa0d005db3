"""The states of a watched reset in one queue, and the transitions between them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from rewindmq.watch.finding import Finding


class State(StrEnum):
    """How far a reset has come in one queue."""

    ACCEPTED = "accepted"
    STORED = "stored"
    REDELIVERING = "redelivering"
    PROVEN = "proven"
    LOST = "lost"
    UNKNOWN = "unknown"


_PROOFS: Final = {
    Finding.FINISHED: State.PROVEN,
    Finding.FETCHED: State.PROVEN,
    Finding.PASSED: State.PROVEN,
    Finding.UNMOVED: State.PROVEN,
}
_LOSSES: Final = {
    Finding.OVERTAKEN: State.LOST,
    Finding.JUMPED: State.LOST,
    Finding.UNTOUCHED: State.LOST,
    Finding.OVER: State.UNKNOWN,
}
_DOUBTS: Final = {**_LOSSES, Finding.ALONE: State.UNKNOWN}

# A finding that is missing in a row changes nothing.
TRANSITIONS: Final[Mapping[State, Mapping[Finding, State]]] = MappingProxyType(
    {
        State.ACCEPTED: {
            Finding.AT_TARGET: State.STORED,
            Finding.UNDERWAY: State.REDELIVERING,
            Finding.REDELIVERY: State.REDELIVERING,
            **_PROOFS,
            **_DOUBTS,
        },
        State.STORED: {
            Finding.UNDERWAY: State.REDELIVERING,
            Finding.REDELIVERY: State.REDELIVERING,
            **_PROOFS,
            **_DOUBTS,
        },
        State.REDELIVERING: {**_PROOFS, Finding.HELD: State.PROVEN, **_LOSSES},
        State.PROVEN: {},
        State.LOST: {},
        State.UNKNOWN: {},
    }
)
FINAL: Final = frozenset(state for state, row in TRANSITIONS.items() if not row)


def transitions_table() -> str:
    """Return the transitions as a table in Markdown, for docs/watched_reset.md."""
    lines = ["| state | finding | next state |", "|---|---|---|"]
    for state, row in TRANSITIONS.items():
        lines += [f"| {state} | {finding} | {after} |" for finding, after in row.items()]
    return "\n".join(lines) + "\n"
