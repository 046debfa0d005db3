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
# The default time limit: real seconds for the work, and protocol seconds for the waits of clients and
# servers, such as a rebalance every 20 s.
_WORK_SECONDS: Final = 20.0
_PROTOCOL_SECONDS: Final = 60.0

# Returns None if the condition holds, else a text that says what is missing.
Condition = Callable[[], Awaitable[str | None]]


class Waiter:
    """Waits of one test.

    Args:
        runtime: clock and timers, whose scale is that of the cluster.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._sleeping: set[asyncio.Future[None]] = set()

    @property
    def default_timeout(self) -> float:
        """Real seconds after which a wait fails unless the test names its own limit."""
        return _WORK_SECONDS + _PROTOCOL_SECONDS * self._runtime.clock.scale

    def notify(self) -> None:
        """Let all waits evaluate their conditions again."""
        for future in self._sleeping:
            if not future.done():
                future.set_result(None)

    async def until(self, condition: Condition, what: str, timeout: float | None = None) -> None:
        """Wait until a condition holds.

        A ``RewindMQError`` of the condition counts as "does not hold yet": a broker may be down.

        Args:
            what: names the condition in the failure.
            timeout: real seconds; None takes ``default_timeout``.

        Raises:
            NotSeenError: the condition did not hold within the timeout; the text has its last answer.
        """
        limit = self.default_timeout if timeout is None else timeout
        deadline = self._now() + limit
        while True:
            try:
                missing = await condition()
            except RewindMQError as error:
                missing = f"{type(error).__name__}: {error}"
            if missing is None:
                return
            left = deadline - self._now()
            if left <= 0:
                raise NotSeenError(f"not within {limit:g} s: {what}; seen last: {missing}")
            await self._change(min(POLL_SECONDS, left))

    async def while_holding(self, condition: Condition, what: str, within: float) -> None:
        """Require that a condition holds until ``within`` protocol seconds have passed.

        Raises:
            NotSeenError: it ceased to hold.
        """
        clock = self._runtime.clock
        deadline = clock.monotonic() + within
        while True:
            missing = await condition()
            if missing is not None:
                raise NotSeenError(f"not for {within:g} s of the cluster's time: {what}; seen: {missing}")
            left = (deadline - clock.monotonic()) * clock.scale
            if left <= 0:
                return
            await self._change(min(POLL_SECONDS, left))

    async def _change(self, seconds: float) -> None:
        """Wait for the next event, at most ``seconds`` real seconds."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = self._runtime.timers.call_timeout(seconds, _wake, future)
        self._sleeping.add(future)
        try:
            await future
        finally:
            timer.cancel()
            self._sleeping.discard(future)

    def _now(self) -> float:
        """Return real seconds; ``monotonic`` counts protocol seconds."""
        clock = self._runtime.clock
        return clock.monotonic() * clock.scale


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
