"""Tells whether a redelivery has a gap: a place where a consumer may have left messages out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

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
