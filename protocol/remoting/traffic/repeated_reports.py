"""Limits how often the log repeats the same complaint about a peer that connects again and again."""

from __future__ import annotations

from typing import Final

# Seconds between two reports about one address.
REPORT_SECONDS: Final = 60.0
# Addresses in the table. A further address replaces the one with the oldest report, which may then be
# reported again sooner.
REMEMBERED_ADDRESSES: Final = 1_000


class RepeatedReports:
    """Decides whether to report a peer's address again."""

    __slots__ = ("_reported",)

    def __init__(self) -> None:
        # In order of their last report.
        self._reported: dict[str, float] = {}

    def is_due(self, host: str, now: float) -> bool:
        """Return True at most once in ``REPORT_SECONDS`` for each host; ``now`` is in protocol seconds."""
        last = self._reported.get(host)
        if last is not None and now - last < REPORT_SECONDS:
            return False
        self._reported.pop(host, None)
        self._reported[host] = now
        if len(self._reported) > REMEMBERED_ADDRESSES:
            del self._reported[next(iter(self._reported))]
        return True
