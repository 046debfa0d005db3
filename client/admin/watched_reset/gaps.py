"""Tells whether a redelivery has a gap, and whether consumers consumed what a skip would leave out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rewindmq.client.admin.watched_reset.group_watch import GroupSample
from rewindmq.client.admin.watched_reset.positions import low_of
from rewindmq.client.admin.watched_reset.sample import QueueSample

# Rates are up to 10 s old, and cover the minute before: until then they cover every moment since the reset.
_RATES_AGE: Final = 11.0
_RATES_END: Final = 60.0
# How much faster than seen a consumer may have been between two samples.
_SLACK: Final = 2
# Seconds between two samples. In more, a consumer may have left messages out, and reaches its mean speed.
FAR: Final = 2.0


class Leaps:
    """The redelivery of a queue, which must go on from the target without a gap.

    A consumer that takes the queue begins at the target, or where the redelivery has come to. A later
    beginning is a leap: messages may be left out, because a late commit was stored. A leap is explained if
    the consumer that worked before is seen to be as fast as the leap. A leap of the same consumer, or to the
    first one, may be twice as fast, because samples miss the fastest moments. The first one needs the target
    as the stored offset, too.

    Args:
        target: the offset that the reset asks for.
    """

    def __init__(self, target: int) -> None:
        self._reached = self._target = target
        # Client id to its fastest work, in messages per second.
        self._fastest: dict[str, float] = {}
        # Messages of each leap, the seconds in which the redelivery must have come so far, and by whom.
        self._leaps: list[tuple[int, float, str]] = []
        # The consumer that worked last.
        self._worker: str | None = None
        self._was_below = False

    @property
    def are_open(self) -> bool:
        """True if a leap is not explained, or a consumer worked below the target."""
        return self._was_below or any(
            messages > self._fastest.get(client_id, 0.0) * seconds
            for messages, seconds, client_id in self._leaps
        )

    def note_below(self, lows: Iterable[int]) -> None:
        """Note where consumers hold messages: below the target, it is not the reset that moved them."""
        self._was_below = self._was_below or any(low < self._target for low in lows)

    def begin(self, client_id: str, low: int, seconds: float, stored: int, *, is_same: bool) -> None:
        """Note that a consumer begins at ``low``, ``seconds`` after the sample before.

        Args:
            stored: the stored offset. The first consumer begins there, and it may be that of a late commit.
            is_same: the consumer goes on with its own redelivery.
        """
        is_first = self._worker is None
        if low > self._reached:
            is_late = is_first and stored > self._target
            has_slack = seconds <= FAR and (is_same or is_first)
            slack = 0 if is_late else _SLACK if has_slack else 1
            self._leaps.append((low - self._reached, slack * seconds, self._worker or client_id))
        self._reach(client_id, low)

    def go_on(self, client_id: str, low: int, *steps: tuple[int, float]) -> None:
        """Note that the consumer went on to ``low`` without a gap.

        Args:
            steps: messages, and the seconds that they took. Offsets are whole numbers, so there may have
                been one message less.
        """
        fastest = max((messages - 1) / seconds for messages, seconds in steps)
        self._fastest[client_id] = max(self._fastest.get(client_id, 0.0), fastest)
        self._reach(client_id, low)

    def _reach(self, client_id: str, low: int) -> None:
        self._reached = max(self._reached, low)
        self._worker = client_id


class Passing:
    """A skip after which the consumers may have come to the target by themselves.

    The consumers' rates exclude it: fewer messages were consumed than the skip leaves out.

    Args:
        before: the queue right before the reset.
        old, target: see ``QueueWatch``.

    Attributes:
        is_excluded: the consumers cannot have consumed every message up to the target.
    """

    def __init__(self, before: QueueSample, old: int, target: int) -> None:
        low = max((low_of(position) for position in before.live), default=old)
        done = sum(position.done for position in before.live)
        self._skipped = target - max(low, old) - done
        self._has_returned = False
        self._passed: float | None = None
        self.is_excluded = target == old

    def add(self, seconds: float, seen: QueueSample, group: GroupSample, *, is_there: bool) -> None:
        """Take in a sample.

        Args:
            is_there: the stored offset and every consumer are at the target or past it.
        """
        if self._passed is None:
            self._passed = seconds if is_there and seen.live else None
        elif not is_there:
            # A late commit was stored, so the consumers go through the messages after all.
            self._has_returned, self.is_excluded = True, False
        if self._passed is None or not self._passed + _RATES_AGE <= seconds <= _RATES_END:
            return
        is_told = group.sample.is_complete and group.known <= group.sample.consumed.keys()
        is_counted = group.has_whole_rates and not self._has_returned
        if is_counted and is_told and group.consumed < self._skipped:
            self.is_excluded = True
