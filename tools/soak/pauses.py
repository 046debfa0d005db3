"""Pauses of the soak itself, in real seconds: the time scale of the cluster does not shorten them."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.remoting.runtime import LoopTimers, SystemClock

_TIMERS: Final = LoopTimers()
_CLOCK: Final = SystemClock()


async def pause(seconds: float) -> None:
    await _TIMERS.sleep(seconds)


def wall_clock_ms() -> int:
    """Return the clock that brokers on this machine stamp messages with, ms."""
    return _CLOCK.now_ms()
