"""The group was at the target already: the reset has nothing to redeliver and nothing to skip.

Shows: the stored offset and every consumer are at the target or past it.
Cannot see: where the group was if the broker or a consumer did not answer right before the reset.
"""

from __future__ import annotations

from rewindmq.watch.evidence.moment import Case, Moment
from rewindmq.watch.evidence.position import low_of
from rewindmq.watch.finding import Finding


class Unmoved:
    """Looks at a queue whose target is where the group was."""

    def __init__(self, case: Case) -> None:
        self._case = case

    def add(self, moment: Moment) -> Finding | None:
        """Take in a moment; find ``UNMOVED``."""
        case, target = self._case, self._case.target
        is_there = moment.stored >= target and all(low_of(each) >= target for each in moment.seen.live)
        return Finding.UNMOVED if case.is_known and target == case.old and is_there else None
