"""Places where a log holds something other than intact records."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class DamageKind(StrEnum):
    """What is wrong at a place of the log."""

    # Behind the last record stands something that is neither a record nor empty.
    TORN_TAIL = "torn tail"
    # The body does not have the CRC its record states; the record is still given out.
    BAD_CRC = "bad CRC"
    # No intact record, but there are later ones.
    HOLE = "hole"


class Damage(NamedTuple):
    """One such place.

    Attributes:
        start, end: log positions, end exclusive.
        detail: one sentence.
    """

    kind: DamageKind
    segment: int
    start: int
    end: int
    detail: str
