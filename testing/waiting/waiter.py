"""Waiter: evaluates conditions until they hold, or until a time limit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.testing.errors import NotSeenError

# Real seconds between two evaluations without an event: brokers do not report changes, so they are asked.
POLL_SECONDS: Final = 0.02
# A wait whose interval grows multiplies it after each evaluation. A check of the application's own state may
# be true for a short time only, so its interval does not grow beyond this number of seconds.
_GROWTH: Final = 4
_LONGEST_LOCAL: Final = 0.4
# The default time limit: real seconds for the work, and protocol seconds for the waits of clients and
# servers, such as a rebalance every 20 s.
_WORK_SECONDS: Final = 20.0
_PROTOCOL_SECONDS: Final = 60.0
# The least real seconds that a check of the application has, however short its limit: a busy machine may need
# them for one request.
_CHECK_SECONDS: Final = 1.0

# Returns None if the condition holds, else a text that says what is missing.
Condition = Callable[[], Awaitable[str | None]]


class Waiter:
    """Waits of one test.

    Args:
        runtime: clock and timers, whose scale is that of the cluster.
        intervals: least and greatest real seconds between two evaluations that ask brokers. The interval
            grows from the least to the greatest, and is the least again after an event.
    """

    def __init__(
        self, runtime: Runtime, intervals: tuple[float, float] = (POLL_SECONDS, POLL_SECONDS)
    ) -> None:
        self._runtime = runtime
        self._intervals = intervals
        self._local_intervals = (POLL_SECONDS, min(intervals[1], _LONGEST_LOCAL))
        # In the order of their beginning, so that a simulated test is repeatable.
        self._sleeping: dict[asyncio.Future[bool], None] = {}

    @property
    def default_timeout(self) -> float:
        """Real seconds after which a wait fails unless the test names its own limit."""
        return _WORK_SECONDS + _PROTOCOL_SECONDS * self._runtime.clock.scale

    def notify(self) -> None:
        """Let all waits evaluate their conditions again."""
        for future in self._sleeping:
            _wake(future, True)

    async def until(
        self, condition: Condition, what: str, timeout: float | None = None, *, is_local: bool = False
    ) -> None:
        """Wait until a condition holds.

        A ``RewindMQError`` of the condition counts as "does not hold yet": a broker may be down.

        Args:
            what: names the condition in the failure.
            timeout: real seconds; None takes ``default_timeout``.
            is_local: True if the condition asks no broker.

        Raises:
            NotSeenError: the condition did not hold within the timeout, or did not return; the text has its
                last answer.
        """
        limit = self.default_timeout if timeout is None else timeout
        deadline = self._now() + limit
        intervals = self._local_intervals if is_local else self._intervals
        interval = intervals[0]
        missing: str | None = "nothing"
        while True:
            # The kit's own requests have time limits; a check of the application may hang.
            bound = max(deadline - self._now(), _CHECK_SECONDS) if is_local else None
            try:
                async with asyncio.timeout(bound) as running:
                    missing = await condition()
            except RewindMQError as error:
                missing = f"{type(error).__name__}: {error}"
            except TimeoutError:
                if not running.expired():
                    raise
                raise NotSeenError(
                    f"not within {limit:g} s: {what}; the check did not return; seen last: {missing}"
                ) from None
            if missing is None:
                return
            left = deadline - self._now()
            if left <= 0:
                raise NotSeenError(f"not within {limit:g} s: {what}; seen last: {missing}")
            interval = await self._change(interval, left, intervals)

    async def while_holding(
        self, condition: Condition, what: str, within: float, *, is_local: bool = False
    ) -> None:
        """Require that a condition holds until ``within`` protocol seconds have passed.

        Raises:
            NotSeenError: it ceased to hold, or did not return within the default timeout.
        """
        clock = self._runtime.clock
        deadline = clock.monotonic() + within
        intervals = self._local_intervals if is_local else self._intervals
        interval = intervals[0]
        while True:
            try:
                async with asyncio.timeout(self.default_timeout if is_local else None) as running:
                    missing = await condition()
            except TimeoutError:
                if not running.expired():
                    raise
                raise NotSeenError(
                    f"{what}: the check did not return within {self.default_timeout:g} s"
                ) from None
            if missing is not None:
                raise NotSeenError(f"not for {within:g} s of the cluster's time: {what}; seen: {missing}")
            left = (deadline - clock.monotonic()) * clock.scale
            if left <= 0:
                return
            interval = await self._change(interval, left, intervals)

    async def _change(self, interval: float, left: float, intervals: tuple[float, float]) -> float:
        """Wait for the next event, at most ``interval`` real seconds; return the next interval."""
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        timer = self._runtime.timers.call_timeout(min(interval, left), _wake, future, False)
        self._sleeping[future] = None
        try:
            was_event = await future
        finally:
            timer.cancel()
            del self._sleeping[future]
        return intervals[0] if was_event else min(interval * _GROWTH, intervals[1])

    def _now(self) -> float:
        """Return real seconds; ``monotonic`` counts protocol seconds."""
        clock = self._runtime.clock
        return clock.monotonic() * clock.scale


def _wake(future: asyncio.Future[bool], was_event: bool) -> None:
    if not future.done():
        future.set_result(was_event)
