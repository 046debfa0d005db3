"""Formats byte counts for people."""

from __future__ import annotations

from typing import Final

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_STEP: Final = 1024


def format_bytes(count: int) -> str:
    """``1.4 MiB``."""
    amount = float(count)
    for unit in _UNITS[:-1]:
        if amount < _STEP:
            return f"{amount:,.0f} {unit}" if unit == "B" else f"{amount:,.1f} {unit}"
        amount /= _STEP
    return f"{amount:,.1f} {_UNITS[-1]}"
