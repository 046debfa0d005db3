"""Where the stored offset is: at the target, or in a rewind on its way back to the old offset.

Shows: the reset was applied.
Cannot see: whether anything was redelivered; a late commit may be between the two, too.
"""

from __future__ import annotations

from rewindmq.watch.evidence.moment import Case, Moment
from rewindmq.watch.finding import Finding


class Stored:
    """Looks at the stored offset."""

    def __init__(self, case: Case) -> None:
        self._case = case

    def add(self, moment: Moment) -> Finding | None:
        """Take in a moment; find ``AT_TARGET`` or ``UNDERWAY``."""
        case, stored = self._case, moment.stored
        if not case.is_rewind:
            return Finding.AT_TARGET if stored >= case.target else None
        if not case.is_moved(stored):
            return None
        return Finding.AT_TARGET if stored == case.target else Finding.UNDERWAY
