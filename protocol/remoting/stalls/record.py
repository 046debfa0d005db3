"""Records how long a server's steps hold its event loop, and which request, timer or close was longest."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from rewindmq.protocol.code import RequestCode

# A hold longer than this is a stall: it is counted, and a new longest one is logged. Real seconds.
STALL_SECONDS: Final = 0.05
# Shorter holds are not recorded.
NOTED_SECONDS: Final = 0.001
# At most one stall is logged in this many real seconds.
LOG_SECONDS: Final = 10.0

_log = logging.getLogger(__name__)

# What held the loop: a request code, a callback, or a description.
Cause = int | str | Callable[..., object]


@dataclass(frozen=True, slots=True)
class Stall:
    """One hold of the event loop.

    Attributes:
        ms: real milliseconds.
        cause: the request, timer or close.
        peer: ``host:port`` of the connection; "" if there is none.
        at_ms: wall-clock ms since 1970 at its end.
    """

    ms: float
    cause: str
    peer: str
    at_ms: int

    def __str__(self) -> str:
        return f"{self.cause} from {self.peer}" if self.peer else self.cause


class Stalls:
    """The longest hold of an event loop since the start, and the number of stalls.

    Args:
        now: a monotonic clock in protocol seconds.
        now_ms: the wall clock in ms.
        scale: real seconds in one protocol second.

    Attributes:
        longest: the longest hold; None until one takes ``NOTED_SECONDS``.
        count: number of holds longer than ``STALL_SECONDS``.
        now: the clock whose readings ``passed`` expects.
        threshold: ``NOTED_SECONDS`` in protocol seconds.
        on_slow_request: called after each step of a request that takes longer than the threshold, with its
            code and the real milliseconds.
    """

    def __init__(self, now: Callable[[], float], now_ms: Callable[[], int], scale: float) -> None:
        self.now = now
        self.longest: Stall | None = None
        self.count = 0
        self._now_ms = now_ms
        self._scale = scale
        self.threshold: Final = NOTED_SECONDS / scale
        self.on_slow_request: Callable[[int, float], None] | None = None
        # Protocol seconds: the longest hold since the last call of ``late``.
        self._explained = 0.0
        self._logged_at = -LOG_SECONDS / scale
        self._is_logged = True

    def passed(self, began: float, cause: Cause, peer: str = "") -> float:
        """Record the hold from ``began`` until now, if it matters; return the time now."""
        now = self.now()
        if now - began > self.threshold:
            self.record(now - began, cause, peer)
        return now

    def late(self, seconds: float) -> None:
        """Record that a timer ran ``seconds`` of protocol time late, if no recorded hold explains it.

        The cause is then a step that no other place times, or several steps one after the other.
        """
        if seconds > max(self.threshold, self._explained):
            self.record(seconds, "several steps, or a background task", "")
        self._explained = 0.0

    def log(self) -> None:
        """Log the longest stall, unless it is logged or the last line is less than ``LOG_SECONDS`` old."""
        now = self.now()
        if self._is_logged or self.longest is None or (now - self._logged_at) * self._scale < LOG_SECONDS:
            return
        self._is_logged = True
        self._logged_at = now
        _log.warning("the event loop stood still for %.0f ms: %s", self.longest.ms, self.longest)

    def record(self, seconds: float, cause: Cause, peer: str) -> None:
        """Record a hold of ``seconds`` of protocol time, above ``threshold``."""
        self._explained = max(self._explained, seconds)
        real_seconds = seconds * self._scale
        is_stall = real_seconds > STALL_SECONDS
        self.count += is_stall
        ms = real_seconds * 1_000
        if isinstance(cause, int) and self.on_slow_request is not None:
            self.on_slow_request(cause, ms)
        if self.longest is None or ms > self.longest.ms:
            self.longest = Stall(ms, describe(cause), peer, self._now_ms())
            self._is_logged = not is_stall
            self.log()


def describe(cause: Cause) -> str:
    """Return the text of a cause: ``PULL_MESSAGE (11)`` for a request code."""
    if isinstance(cause, str):
        return cause
    if isinstance(cause, int):
        with suppress(ValueError):
            return f"{RequestCode(cause).name} ({cause:d})"
        return f"request code {cause:d}"
    return f"timer {getattr(cause, '__qualname__', cause)}"
