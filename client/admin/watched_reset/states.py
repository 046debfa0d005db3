"""The states of a watched reset in one queue, and the transitions between them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class State(StrEnum):
    """How far a reset has come in one queue."""

    ACCEPTED = "accepted"
    STORED = "stored"
    REDELIVERING = "redelivering"
    PROVEN = "proven"
    LOST = "lost"
    UNKNOWN = "unknown"


class Sign(StrEnum):
    """What the samples of a queue show."""

    AT_TARGET = "the stored offset is at the target"
    UNDERWAY = "the stored offset is between the target and the old offset"
    REDELIVERY = "a consumer works from the target on"
    COUNTED = "the consumers fetched as many messages as the redelivery has, and are through"
    FINISHED = "a consumer is through every message that the broker handed out again"
    HELD = "nothing has contradicted the redelivery for 40 s"
    JUMPED = "the stored offset is above messages that a consumer still holds"
    UNTOUCHED = "the stored offset is not at the target, and nothing was redelivered"
    ALONE = "no consumer was connected before the reset, nor for 30 s since"
    OVER = "the time is over"


_PROOFS: Final = {Sign.FINISHED: State.PROVEN, Sign.COUNTED: State.PROVEN}
_LOSSES: Final = {Sign.JUMPED: State.LOST, Sign.UNTOUCHED: State.LOST, Sign.OVER: State.UNKNOWN}
_DOUBTS: Final = {**_LOSSES, Sign.ALONE: State.UNKNOWN}

# A sign that is missing in a row changes nothing.
TRANSITIONS: Final[Mapping[State, Mapping[Sign, State]]] = MappingProxyType(
    {
        State.ACCEPTED: {
            Sign.AT_TARGET: State.STORED,
            Sign.UNDERWAY: State.REDELIVERING,
            Sign.REDELIVERY: State.REDELIVERING,
            **_PROOFS,
            **_DOUBTS,
        },
        State.STORED: {
            Sign.UNDERWAY: State.REDELIVERING,
            Sign.REDELIVERY: State.REDELIVERING,
            **_PROOFS,
            **_DOUBTS,
        },
        State.REDELIVERING: {**_PROOFS, Sign.HELD: State.PROVEN, **_LOSSES},
        State.PROVEN: {},
        State.LOST: {},
        State.UNKNOWN: {},
    }
)
FINAL: Final = frozenset(state for state, row in TRANSITIONS.items() if not row)


def transitions_table() -> str:
    """Return the transitions as a table in Markdown, for docs/watched_reset.md."""
    lines = ["| state | sign | next state |", "|---|---|---|"]
    for state, row in TRANSITIONS.items():
        lines += [f"| {state} | {sign} | {after} |" for sign, after in row.items()]
    return "\n".join(lines) + "\n"
