"""Frames that a pattern caught, until they are released, dropped or refused."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from rewindmq.protocol.ext_text import ext_text
from rewindmq.protocol.remoting.runtime import Timers
from rewindmq.race.errors import RaceError
from rewindmq.race.proxy.frame import Frame, code_name
from rewindmq.race.proxy.pattern import Form, FramePattern


class HeldFrame(Protocol):
    """A caught frame."""

    def release(self) -> None:
        """Pass the frame on."""

    def drop(self, reason: str) -> None:
        """Drop the frame."""

    def refuse(self, code: int, remark: str) -> None:
        """Replace the response by a refusal with this response code, and pass it on."""


class FrameHold:
    """Implements ``Hold`` for frames that pass a proxy.

    Args:
        on_over: called once, when the hold ends and catches no more frames.
    """

    def __init__(self, pattern: FramePattern, timers: Timers, on_over: Callable[[FrameHold], None]) -> None:
        self.pattern = pattern
        self._fields = {name: ext_text(value) for name, value in pattern.fields.items()}
        self._timers = timers
        self._on_over = on_over
        self._to_skip = pattern.skip
        self._caught = 0
        self._held: dict[HeldFrame, Frame] = {}
        self._is_over = False
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []

    @property
    def caught(self) -> int:
        """Number of frames caught so far."""
        return self._caught

    @property
    def held(self) -> tuple[Frame, ...]:
        """The frames that are held now, oldest first."""
        return tuple(self._held.values())

    def takes(self, frame: Frame) -> bool:
        """Return True if the hold catches this frame; count it if it is skipped."""
        if self._is_over or not self._matches(frame):
            return False
        if self._to_skip:
            self._to_skip -= 1
            return False
        return self.pattern.count is None or self._caught < self.pattern.count

    def add(self, frame: Frame, held: HeldFrame) -> None:
        """Hold a caught frame."""
        self._caught += 1
        self._held[held] = frame
        for count, waiter in self._waiters:
            if self._caught >= count and not waiter.done():
                waiter.set_result(None)

    def remove(self, held: HeldFrame) -> None:
        """Remove a frame that is lost because its connection is closed."""
        del self._held[held]

    async def wait(self, count: int = 1, *, seconds: float = 60.0) -> None:
        """Wait until ``count`` frames are caught.

        Raises:
            RaceError: that takes longer than ``seconds`` (never scaled), or the hold ends.
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
        """Pass on the held frames, in order, and end the hold."""
        for held in self._end():
            held.release()

    def drop(self) -> None:
        """Drop the held frames, and end the hold."""
        for held in self._end():
            held.drop("dropped by the hold")

    def refuse(self, code: int, remark: str) -> None:
        """See ``Hold``."""
        if any(frame.form is not Form.RESPONSE for frame in self._held.values()):
            raise RaceError("only responses can be turned into refusals")
        for held in self._end():
            held.refuse(code, remark)

    def _end(self) -> list[HeldFrame]:
        kept = list(self._held)
        self._held.clear()
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
