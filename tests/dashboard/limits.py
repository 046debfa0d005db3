"""Time limits that a test looks at as events: which ran out, how many in a row, and when they may run out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from rewindmq.dashboard.data.answer import LIMIT_SECONDS
from rewindmq.protocol.remoting.runtime import Cancellable, LoopTimers, system_runtime
from tests.dashboard.site import Site, dashboard


class Limits:
    """Timers in real time, which note the time limits of responses.

    Attributes:
        rounds: the most limits that ran out one after the other; 2: a page asked again after a silence.
        seconds: how long the limits were that ran out.
    """

    def __init__(self) -> None:
        self._timers = LoopTimers()
        self._held: list[_Limit] | None = None
        self._begun = asyncio.Event()
        self._page = 0
        self.rounds = 0
        self.seconds: set[float] = set()

    def forget(self) -> None:
        """Look only at limits that begin from now on: the client keeps those of requests of earlier pages."""
        self._page += 1
        self.rounds = 0
        self.seconds = set()

    def hold(self) -> None:
        """Let no limit begin to run until ``release``."""
        self._held = []
        self._begun.clear()

    async def held(self) -> None:
        """Wait until there is a limit."""
        async with asyncio.timeout(60):
            await self._begun.wait()

    def release(self) -> None:
        """Let the limits run from now on."""
        held, self._held = self._held or [], None
        for limit in held:
            limit.begin()

    def call_later(self, seconds: float, callback: Callable[..., object], *args: Any) -> Cancellable:
        return self._timers.call_later(seconds, callback, *args)

    async def sleep(self, seconds: float) -> None:
        await self._timers.sleep(seconds)

    def call_timeout(self, seconds: float, callback: Callable[..., object], *args: Any) -> Cancellable:
        page, after = self._page, self.rounds

        def over() -> None:
            # The client's own short timers are no time limits of servers.
            if page == self._page and seconds >= LIMIT_SECONDS:
                self.rounds = max(self.rounds, after + 1)
                # A request lives on for its own 3 s when its question is over; a slow page meets that, too.
                if LIMIT_SECONDS not in self.seconds:
                    self.seconds.add(seconds)
            callback(*args)

        limit = _Limit(self._timers, seconds, over)
        if self._held is None:
            limit.begin()
        else:
            self._held.append(limit)
            self._begun.set()
        return limit


class _Limit:
    def __init__(self, timers: LoopTimers, seconds: float, over: Callable[[], None]) -> None:
        self._timers = timers
        self._seconds = seconds
        self._over = over
        self._timer: Cancellable | None = None
        self._is_cancelled = False

    def begin(self) -> None:
        if not self._is_cancelled:
            self._timer = self._timers.call_timeout(self._seconds, self._over)

    def cancel(self) -> None:
        self._is_cancelled = True
        if self._timer is not None:
            self._timer.cancel()


class LimitedSite(Site):
    """A served dashboard with the limits of its questions."""

    def __init__(self, site: Site, limits: Limits) -> None:
        super().__init__(site.url, site.settings)
        self.limits = limits

    async def silent_page(self, path: str) -> str:
        """Return a page that waits for a server that hangs: for 2 s, and once only."""
        self.limits.forget()
        page = await self.get(path)
        self.require_one_limit(path)
        return page.text

    def require_one_limit(self, path: str) -> None:
        """Check that no question was asked after another's time was over."""
        assert self.limits.seconds == {LIMIT_SECONDS}, path
        assert self.limits.rounds == 1, path


@asynccontextmanager
async def limited_dashboard(namesrv: str) -> AsyncIterator[LimitedSite]:
    """Serve every page; the block's value also knows the time limits."""
    limits = Limits()
    runtime = replace(system_runtime(), timers=limits)
    try:
        async with dashboard(namesrv, runtime=runtime) as site:
            yield LimitedSite(site, limits)
    finally:
        runtime.workers.close()
