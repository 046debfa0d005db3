"""A skip holds: the stored offset and every consumer have been at the target or past it for 40 s.

Shows: the consumers consumed fewer messages in the minute around the reset than the skip leaves out, so they
have not come to the target by themselves.
Cannot see: a skip of few messages, or of a group that consumes many others, or that subscribes to tags.
"""

from __future__ import annotations

from typing import Final

from rewindmq.watch.evidence.moment import SETTLED, Case, Moment
from rewindmq.watch.evidence.position import low_of
from rewindmq.watch.finding import Finding
from rewindmq.watch.rules.held import HOLD

# Rates are up to 10 s old, and cover the minute before: until then they cover every moment since the reset.
_RATES_AGE: Final = 11.0
_RATES_END: Final = 60.0


class Skipped:
    """Waits until the skip has been held for ``HOLD`` seconds.

    Attributes:
        passing: tells whether the consumers may have come to the target by themselves.
        since: seconds after the reset since when the skip holds; None: it does not.
        may_be_consumed: the consumers may have come to the target by themselves.
    """

    def __init__(self, case: Case) -> None:
        self._case = case
        self.passing = Passing(case)
        self.since: float | None = None
        self._consumed_through = False

    @property
    def may_be_consumed(self) -> bool:
        return self._consumed_through or not self.passing.is_excluded

    def add(self, moment: Moment) -> Finding | None:
        """Take in a moment; find ``PASSED``."""
        case, live = self._case, moment.seen.live
        is_stored = moment.stored >= case.target
        is_there = is_stored and all(low_of(position) >= case.target for position in live)
        is_between = any(case.old < low_of(position) < case.target for position in live)
        if moment.seconds > SETTLED and (is_between or not is_stored):
            self._consumed_through = True
        self.passing.add(moment, is_there=is_there)
        if not is_there or moment.is_after_gap:
            self.since = None
        if is_there and live and self.since is None:
            self.since = moment.seconds
        is_held = self.since is not None and moment.seconds - self.since >= HOLD
        return Finding.PASSED if is_held and not self.may_be_consumed else None


class Passing:
    """A skip after which the consumers may have come to the target by themselves.

    The consumers' rates exclude it: fewer messages were consumed than the skip leaves out.

    Args:
        case: the skip.

    Attributes:
        skipped: messages that the skip leaves out.
        consumed: messages that they consumed in a minute around the skip, at most: the lowest bound that the
            rates gave; None if they gave none.
        is_excluded: the consumers cannot have consumed every message up to the target.
    """

    def __init__(self, case: Case) -> None:
        low = max((low_of(position) for position in case.before.live), default=case.old)
        done = sum(position.done for position in case.before.live)
        self._is_known = case.is_known
        self.skipped = case.target - max(low, case.old) - done
        self._has_returned = False
        self._passed: float | None = None
        self.consumed: float | None = None
        self.is_excluded = False

    def add(self, moment: Moment, *, is_there: bool) -> None:
        """Take in a moment.

        Args:
            is_there: the stored offset and every consumer are at the target or past it.
        """
        seconds, group = moment.seconds, moment.group
        if self._passed is None:
            self._passed = seconds if is_there and moment.seen.live else None
        elif not is_there:
            # A late commit was stored, so the consumers go through the messages after all.
            self._has_returned, self.is_excluded = True, False
        if self._passed is None or not self._passed + _RATES_AGE <= seconds <= _RATES_END:
            return
        is_told = group.sample.is_complete and group.known <= group.sample.consumed.keys()
        is_counted = self._is_known and group.has_whole_rates and not self._has_returned
        if not (is_counted and is_told):
            return
        self.consumed = group.consumed if self.consumed is None else min(self.consumed, group.consumed)
        self.is_excluded = self.is_excluded or group.consumed < self.skipped
