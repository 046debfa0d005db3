"""Numbers and times as forms send them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

_INT64: Final = 2**63


def number_below(text: str, limit: int) -> int | None:
    """Return a number in [0, limit); None: the text is none."""
    if not (text.isascii() and text.isdigit() and len(text) < 20) or int(text) >= limit:
        return None
    return int(text)


def milliseconds(text: str) -> int | None:
    """Return ms since 1970 of a number or an ISO time, which is UTC if it names no zone."""
    number = number_below(text, _INT64)
    if number is not None:
        return number
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)
