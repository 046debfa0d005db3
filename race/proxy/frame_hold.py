"""Frames caught by one pattern, until they are let go."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from rewindmq.protocol.ext_text import ext_text
from rewindmq.protocol.remoting.runtime import Timers
from rewindmq.race.errors import RaceError
from rewindmq.race.proxy.frame import Frame, code_name
from rewindmq.race.proxy.pattern import Form, FramePattern


class Keepsake(Protocol):
    """A caught frame, as its hold sees it."""

    def let_go(self) -> None:
        """Send it on."""

    def throw_away(self, reason: str) -> None:
        """Drop it."""

    def refuse(self, code: int, remark: str) -> None:
        """Send it on as another answer."""


class FrameHold:
    """Implements ``Hold`` for frames that pass a proxy.

    Args:
        on_over: called once, when nothing more will be caught.
    """

    def __init__(self, pattern: FramePattern, timers: Timers, on_over: Callable[[FrameHold], None]) -> None:
        self.pattern = pattern
        self._fields = {name: ext_text(value) for name, value in pattern.fields.items()}
        self._timers = timers
        self._on_over = on_over
        self._to_skip = pattern.skip
        self._caught = 0
        self._kept: dict[Keepsake, Frame] = {}
        self._is_over = False
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []

    @property
    def caught(self) -> int:
        """How many were caught so far."""
        return self._caught

    @property
    def kept(self) -> tuple[Frame, ...]:
        """Those caught and neither let go nor lost, oldest first."""
        return tuple(self._kept.values())

    def takes(self, frame: Frame) -> bool:
        """Whether this frame is to be caught; counts those that are skipped."""
        if self._is_over or not self._matches(frame):
            return False
        if self._to_skip:
            self._to_skip -= 1
            return False
        return self.pattern.count is None or self._caught < self.pattern.count

    def keep(self, frame: Frame, keepsake: Keepsake) -> None:
        """Take charge of a caught frame."""
        self._caught += 1
        self._kept[keepsake] = frame
        for count, waiter in self._waiters:
            if self._caught >= count and not waiter.done():
                waiter.set_result(None)

    def forget(self, keepsake: Keepsake) -> None:
        """Remove a frame that is lost because its connection is gone."""
        del self._kept[keepsake]

    async def wait(self, count: int = 1, *, seconds: float = 60.0) -> None:
        """Wait until ``count`` are caught.

        Raises:
            RaceError: not within ``seconds`` (never scaled), or it catches nothing more.
        """
        if self._caught >= count:
            return
        if self._is_over:
            raise RaceError(self._shortage(count, "when the hold ended"))
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (count, waiter)
        self._waiters.append(entry)
        late = RaceError(self._shortage(count, f"within {seconds:g} s"))
        timer = self._timers.call_timeout(seconds, _fail, waiter, late)
        try:
            await waiter
        finally:
            timer.cancel()
            self._waiters.remove(entry)

    def release(self) -> None:
        """Let everything caught go on, in order, and catch nothing more."""
        for keepsake in self._end():
            keepsake.let_go()

    def drop(self) -> None:
        """Throw away what is caught, and catch nothing more."""
        for keepsake in self._end():
            keepsake.throw_away("dropped by the hold")

    def refuse(self, code: int, remark: str) -> None:
        """See ``Hold``."""
        if any(frame.form is not Form.RESPONSE for frame in self._kept.values()):
            raise RaceError("only answers can be turned into refusals")
        for keepsake in self._end():
            keepsake.refuse(code, remark)

    def _end(self) -> list[Keepsake]:
        kept = list(self._kept)
        self._kept.clear()
        if not self._is_over:
            self._is_over = True
            self._on_over(self)
            for count, waiter in self._waiters:
                _fail(waiter, RaceError(self._shortage(count, "when the hold ended")))
        return kept

    def _matches(self, frame: Frame) -> bool:
        pattern = self.pattern
        if frame.code != pattern.code:
            return False
        if pattern.form is None:
            if frame.form is Form.RESPONSE:
                return False
        elif frame.form is not pattern.form:
            return False
        if pattern.response_code is not None and frame.response_code != pattern.response_code:
            return False
        ext = frame.ext
        return all(ext.get(name) == text for name, text in self._fields.items())

    def _shortage(self, count: int, when: str) -> str:
        form = f" {self.pattern.form}" if self.pattern.form is not None else ""
        return f"{self._caught} of {count} {code_name(self.pattern.code)}{form} frames were caught {when}"


def _fail(waiter: asyncio.Future[None], error: RaceError) -> None:
    if not waiter.done():
        waiter.set_exception(error)
