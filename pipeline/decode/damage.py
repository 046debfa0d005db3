"""Damage: places where a log has bytes that are not intact records."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class DamageKind(StrEnum):
    """Kinds of damage."""

    # After the last record, bytes that are neither a record nor empty.
    TORN_TAIL = "torn tail"
    # The body does not match the record's CRC; readers still return the record.
    BAD_CRC = "bad CRC"
    # No intact record here, but intact records follow.
    HOLE = "hole"


class Damage(NamedTuple):
    """One damaged place.

    Attributes:
        start, end: log positions, end exclusive.
        detail: one sentence.
    """

    kind: DamageKind
    segment: int
    start: int
    end: int
    detail: str
