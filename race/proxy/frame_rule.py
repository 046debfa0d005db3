"""Rules: a pattern, and what happens to the frames that it catches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from rewindmq.protocol.ext_text import ext_text
from rewindmq.protocol.remoting.runtime import Cancellable, Timers
from rewindmq.race.errors import RaceError
from rewindmq.race.proxy.action import Action, Delay, Drop, Duplicate, Fail, Hold
from rewindmq.race.proxy.frame import GROUP_FIELDS, Frame, code_name
from rewindmq.race.proxy.pattern import Form, FramePattern, is_called


class CaughtFrame(Protocol):
    """A caught frame, which its connection keeps until one of these methods is called."""

    def release(self) -> None:
        """Pass the frame on."""

    def drop(self, reason: str) -> None:
        """Drop the frame."""

    def refuse(self, code: int, remark: str) -> None:
        """Answer the request with this response code, or replace the response by it, and pass that on."""

    def duplicate(self) -> None:
        """Pass the frame on twice."""


class FrameRule:
    """Catches frames that pass a proxy, and holds them or acts on them at once: a ``pattern.HoldHandle``.

    Args:
        on_over: called once, when the rule ends and catches no more frames.

    Attributes:
        latest: the newest frame that was caught.
    """

    def __init__(
        self, pattern: FramePattern, action: Action, timers: Timers, on_over: Callable[[FrameRule], None]
    ) -> None:
        self.pattern = pattern
        self.action = action
        self.latest: Frame | None = None
        self._fields = {name: ext_text(value) for name, value in pattern.fields.items()}
        self._timers = timers
        self._on_over = on_over
        self._to_skip = pattern.skip
        self._caught = 0
        self._held: dict[CaughtFrame, Frame] = {}
        self._delays: dict[CaughtFrame, Cancellable] = {}
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

    @property
    def keeps_frames(self) -> bool:
        """True if caught frames stay with the rule for a while."""
        return isinstance(self.action, (Hold, Delay))

    def takes(self, frame: Frame) -> bool:
        """Return True if the rule catches this frame; count it if it is skipped."""
        if self._is_over or not self._matches(frame):
            return False
        if self._to_skip:
            self._to_skip -= 1
            return False
        return self.pattern.count is None or self._caught < self.pattern.count

    def add(self, frame: Frame, caught: CaughtFrame) -> None:
        """Hold a caught frame, or act on it."""
        self._caught += 1
        self.latest = frame
        match self.action:
            case Hold():
                self._held[caught] = frame
            case Delay(seconds):
                self._held[caught] = frame
                self._delays[caught] = self._timers.call_later(seconds, self._pass_on_delayed, caught)
            case Drop():
                caught.drop("dropped by a rule")
            case Fail(code, remark):
                caught.refuse(code, remark)
            case Duplicate():
                caught.duplicate()
        for count, waiter in self._waiters:
            if self._caught >= count and not waiter.done():
                waiter.set_result(None)

    def remove(self, caught: CaughtFrame) -> None:
        """Remove a held frame that is lost because its connection is closed."""
        del self._held[caught]
        self._cancel_delay(caught)

    async def wait(self, count: int = 1, *, seconds: float = 60.0) -> None:
        """Wait until ``count`` frames are caught.

        Raises:
            RaceError: that takes longer than ``seconds`` (never scaled), or the rule ends.
        """
        if self._caught >= count:
            return
        if self._is_over:
            raise RaceError(self._shortage(count, "when the rule ended"))
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (count, waiter)
        self._waiters.append(entry)
        timer = self._timers.call_timeout(
            seconds, lambda: _fail(waiter, RaceError(self._shortage(count, f"within {seconds:g} s")))
        )
        try:
            await waiter
        finally:
            timer.cancel()
            self._waiters.remove(entry)

    def release(self) -> None:
        """Pass on the held frames, in order, and end the rule."""
        for held in self._end():
            held.release()

    def drop(self) -> None:
        """Drop the held frames, and end the rule."""
        for held in self._end():
            held.drop("dropped by the hold")

    def refuse(self, code: int, remark: str) -> None:
        """See ``pattern.HoldHandle``."""
        if any(frame.form is not Form.RESPONSE for frame in self._held.values()):
            raise RaceError("only responses can be turned into refusals")
        for held in self._end():
            held.refuse(code, remark)

    def _pass_on_delayed(self, caught: CaughtFrame) -> None:
        del self._held[caught], self._delays[caught]
        caught.release()

    def _cancel_delay(self, caught: CaughtFrame) -> None:
        timer = self._delays.pop(caught, None)
        if timer is not None:
            timer.cancel()

    def _end(self) -> list[CaughtFrame]:
        kept = list(self._held)
        for held in kept:
            self.remove(held)
        if not self._is_over:
            self._is_over = True
            self._on_over(self)
            for count, waiter in self._waiters:
                _fail(waiter, RaceError(self._shortage(count, "when the rule ended")))
        return kept

    def _matches(self, frame: Frame) -> bool:
        pattern = self.pattern
        if frame.code != pattern.code or not self._has_form(frame):
            return False
        if pattern.response_code is not None and frame.response_code != pattern.response_code:
            return False
        for name in (pattern.client, pattern.server):
            if name is not None and not (is_called(frame.source, name) or is_called(frame.target, name)):
                return False
        return all(_has(frame, name, text) for name, text in self._fields.items())

    def _has_form(self, frame: Frame) -> bool:
        if isinstance(self.action, Fail) and frame.form is Form.ONEWAY:
            return False
        if self.pattern.form is not None:
            return frame.form is self.pattern.form
        return frame.form is not Form.RESPONSE

    def _shortage(self, count: int, when: str) -> str:
        form = f" {self.pattern.form}" if self.pattern.form is not None else ""
        return f"{self._caught} of {count} {code_name(self.pattern.code)}{form} frames were caught {when}"


class FrameRules:
    """The rules of one proxy, or of several that stand before the same cluster."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._rules: list[FrameRule] = []

    def add(self, pattern: FramePattern, action: Action) -> FrameRule:
        """Put a rule in force. The oldest rule that matches a frame catches it."""
        rule = FrameRule(pattern, action, self._timers, self._rules.remove)
        self._rules.append(rule)
        return rule

    def catch(self, frame: Frame) -> FrameRule | None:
        """Return the rule that catches this frame; None if no rule does."""
        return next((rule for rule in tuple(self._rules) if rule.takes(frame)), None)

    def drop(self) -> None:
        """Drop all held frames, and end all rules."""
        for rule in tuple(self._rules):
            rule.drop()


def _has(frame: Frame, name: str, text: str | None) -> bool:
    if name == "group":
        return any(_has_field(frame, field, text) for field in GROUP_FIELDS)
    return _has_field(frame, name, text)


def _has_field(frame: Frame, name: str, text: str | None) -> bool:
    """Compare a field; requests with one-letter field names have the long names in ``fields`` only."""
    if name in frame.ext:
        return frame.ext[name] == text
    return name in frame.fields and ext_text(frame.fields[name]) == text


def _fail(waiter: asyncio.Future[None], error: RaceError) -> None:
    if not waiter.done():
        waiter.set_exception(error)
