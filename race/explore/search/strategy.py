"""How a search picks the steps of a schedule at random."""

from __future__ import annotations

from enum import StrEnum


class Strategy(StrEnum):
    """How a search picks the steps of a schedule at random: see ``PctChooser`` and ``UniformChooser``."""

    PCT = "pct"
    UNIFORM = "uniform"
