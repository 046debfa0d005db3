"""Where the stored offset of a rewind is: at the target, or on its way back to the old offset.

Shows: the reset was applied.
Cannot see: whether anything was redelivered; a late commit may be between the two, too.
"""

from __future__ import annotations

from rewindmq.watch.evidence.moment import Case, Moment
from rewindmq.watch.finding import Finding


class Stored:
    """Looks at the stored offset.

    Attributes:
        was_moved: it was at the target, or between target and old offset.
    """

    def __init__(self, case: Case) -> None:
        self._case = case
        self.was_moved = False

    def add(self, moment: Moment) -> Finding | None:
        """Take in a moment; find ``AT_TARGET`` or ``UNDERWAY``."""
        if not self._case.is_moved(moment.stored):
            return None
        self.was_moved = True
        return Finding.AT_TARGET if moment.stored == self._case.target else Finding.UNDERWAY
