"""A skip's stored offset is below the target, and stays there.

Shows: the skip was not applied, or a late commit has replaced it: for 15 s, from 30 s after the reset on.
"""

from __future__ import annotations

from rewindmq.watch.evidence.moment import SETTLED, Case, Moment
from rewindmq.watch.finding import Finding


class NotSkipped:
    """Waits until the stored offset has been below the target for long enough."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._since: float | None = None

    def add(self, moment: Moment) -> Finding | None:
        """Take in a moment; find ``UNTOUCHED``."""
        case = self._case
        if moment.stored >= case.target or moment.seconds <= SETTLED or case.target == case.old:
            return None
        if self._since is None:
            self._since = moment.seconds
        return Finding.UNTOUCHED if moment.seconds - self._since >= SETTLED / 2 else None
