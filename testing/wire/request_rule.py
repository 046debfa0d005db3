"""RequestRule: a fault on single requests or responses."""

from __future__ import annotations

from collections import Counter
from typing import Self

from rewindmq.race.errors import RaceError
from rewindmq.race.proxy.action import Action, Hold
from rewindmq.race.proxy.frame import Frame
from rewindmq.race.proxy.frame_rule import FrameRule
from rewindmq.race.proxy.pattern import FramePattern
from rewindmq.testing.errors import KitError, NotSeenError
from rewindmq.testing.wire.fault import WireFault
from rewindmq.testing.wire.passed import FrameKind
from rewindmq.testing.wire.wire import Wire


class RequestRule(WireFault):
    """What ``rmq.on(...).hold()`` and its siblings return; it begins when it is awaited.

    A rule that nothing meets fails the test at its end, unless it is ``optional``.
    """

    def __init__(
        self, wire: Wire, text: str, pattern: FramePattern, action: Action, default_timeout: float
    ) -> None:
        super().__init__(wire, text)
        self._pattern = pattern
        self._action = action
        self._default_timeout = default_timeout
        self._is_optional = False
        self._was_released = False
        self._before: Counter[FrameKind] = Counter()
        self._rule: FrameRule

    def optional(self) -> Self:
        """Let the test pass even if nothing meets the rule."""
        self._is_optional = True
        return self

    @property
    def count(self) -> int:
        """How many frames have met the rule."""
        return self._rule.caught if self._has_begun else 0

    @property
    def held(self) -> tuple[Frame, ...]:
        """The frames that are held or delayed now, oldest first."""
        return self._rule.held if self._has_begun else ()

    @property
    def holds_frames(self) -> bool:
        return self.is_in_force and isinstance(self._action, Hold) and bool(self._rule.held)

    async def met(self, timeout: float | None = None, *, count: int = 1) -> Frame:
        """Wait until ``count`` frames have met the rule; return the last of them.

        Args:
            timeout: real seconds; None: 20 s and 60 s of the cluster's time.

        Raises:
            KitError: the rule has not begun.
            NotSeenError: fewer within the timeout; the text has the requests that did pass.
        """
        self._require_begun()
        limit = self._default_timeout if timeout is None else timeout
        try:
            await self._rule.wait(count, seconds=limit)
        except RaceError as error:
            raise NotSeenError(f"{self}: {error}; {self._passed()}") from None
        assert self._rule.latest is not None
        return self._rule.latest

    def release(self) -> None:
        """Pass on the held or delayed frames in order, and end the rule.

        Raises:
            KitError: the rule has not begun, keeps no frames, or was released before.
        """
        self._take_release("release")
        self._rule.release()

    def drop_held(self) -> None:
        """Drop the held or delayed frames, and end the rule; errors as in ``release``."""
        self._take_release("drop_held")
        self._rule.drop()

    def stop(self) -> None:
        """End the rule, for example one with ``times=None``; what it holds or delays is passed on."""
        self._require_begun()
        self.settle()

    def _take_release(self, method: str) -> None:
        self._require_begun()
        if not self._rule.keeps_frames:
            raise KitError(f"{self}: keeps no frames; end it with stop(), not with {method}()")
        if self._was_released:
            raise KitError(f"{self}: its frames were released or dropped before, which ended it")
        if self._is_over:
            raise KitError(f"{self}: is over; its frames were passed on")
        self._was_released = self._is_over = True

    def _begin(self) -> None:
        self._before = self._wire.passed.counts()
        self._rule = self._wire.rules.add(self._pattern, self._action)

    def _end(self) -> None:
        self._rule.release()

    def _unmet(self) -> str | None:
        if self._is_optional or self._rule.caught:
            return None
        return f"{self}: nothing met it; {self._passed()}"

    def _passed(self) -> str:
        return self._wire.passed.text_since(self._before, self._pattern.code.name)
