"""DueTimes: when the messages of each delay level are due, by the monotonic clock.

A ConsumeQueue entry of the schedule topic holds the store time plus the delay, by the wall clock. RocketMQ
4.9.4 compares it with the wall clock (``ScheduleMessageService``): if the clock is set ahead, messages come
early; if it is set back, ``correctDeliverTimestamp`` delivers them at once.
Changed: for each message that is stored while the broker runs, the monotonic clock measures the delay. For
older messages, the wall clock at the broker's start says how much is left, at most the whole delay.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Final

from rewindmq.broker.store.consume_queue.tags_code import DelayLevels
from rewindmq.protocol.remoting.runtime import Clock

LOOK_SECONDS: Final = 0.1
# A level's arrivals take at most some 12 MB. Delays of up to 10,000 s are exact to the tick, and longer ones
# to a hundred-thousandth of their length.
_MOST_ARRIVALS: Final = 100_000
# Binary fractions: a tick may be computed a little too late.
_ROUNDING_TICKS: Final = 1e-6


class DueTimes:
    """When messages are due: ticks of 100 ms since the service's first look at the levels.

    Args:
        first_look: monotonic protocol seconds of tick 0.
    """

    def __init__(self, clock: Clock, levels: DelayLevels, first_look: float) -> None:
        self._clock = clock
        self._levels = levels
        self._first_look = first_look
        # Seconds for which the clocks have been moved ahead as if time had passed.
        self._travelled = 0.0
        self._start_ms = clock.now_ms()
        self._start = clock.monotonic()
        # By level: the offset of the first message of a tick, and the tick until which it was stored.
        self._arrivals: dict[int, deque[tuple[int, int]]] = {}

    def note(self, level: int, offset: int) -> None:
        """Note that the level's next message is stored now, at ``offset``; again if the store refused it."""
        arrivals = self._arrivals.setdefault(level, deque())
        spacing = math.ceil(self._delay(level) / LOOK_SECONDS / _MOST_ARRIVALS)
        tick = math.ceil(self._tick(0.0) / spacing) * spacing
        while arrivals and arrivals[-1][0] >= offset:
            arrivals.pop()
        if not arrivals or arrivals[-1][1] < tick:
            arrivals.append((offset, tick))

    def seconds_left(self, level: int, offset: int, due_ms: int) -> float:
        """Return the protocol seconds until a message is due; 0 if it is.

        Args:
            offset: the level's first message that is not delivered.
            due_ms: the time in its ConsumeQueue entry.
        """
        delay = self._delay(level)
        arrivals = self._arrivals.setdefault(level, deque())
        while len(arrivals) > 1 and arrivals[1][0] <= offset:
            arrivals.popleft()
        if arrivals and arrivals[0][0] <= offset:
            due = self._first_look + arrivals[0][1] * LOOK_SECONDS + delay
        else:
            left = (due_ms - self._start_ms) / 1_000 / self._levels.scale
            due = self._start + min(max(left, 0.0), delay)
        left = due - self._now()
        return left if left > _ROUNDING_TICKS * LOOK_SECONDS else 0.0

    def _tick(self, seconds: float) -> int:
        """Return the first tick that is at least ``seconds`` away; negative before the first look."""
        return math.ceil((self._now() + seconds - self._first_look) / LOOK_SECONDS - _ROUNDING_TICKS)

    def until_tick(self, seconds: float) -> float:
        """Return the seconds until that tick, at least until the first look."""
        return max(0.0, self._first_look + max(0, self._tick(seconds)) * LOOK_SECONDS - self._now())

    def travel(self, seconds: float) -> None:
        """Let ``seconds`` pass for all delays: the wall clock was moved ahead for that.

        A process that starts in the future of its parent's clock learns of it only here, so the rest of the
        delays of older messages is computed again.
        """
        self._travelled += seconds
        self._start_ms, self._start = self._clock.now_ms(), self._now()

    def _now(self) -> float:
        return self._clock.monotonic() + self._travelled

    def _delay(self, level: int) -> float:
        return self._levels.delay_ms(level) / 1_000 / self._levels.scale
