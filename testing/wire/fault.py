"""WireFault: what all faults between clients and servers have in common."""

from __future__ import annotations

from collections.abc import Generator
from types import TracebackType
from typing import Any, Self

from rewindmq.testing.errors import KitError, NotSeenError
from rewindmq.testing.wire.wire import Wire


class WireFault:
    """A fault that begins when it is awaited: ``await fault``, or ``async with fault``.

    As soon as ``await`` returns, the fault is in force. ``async with`` ends it, and fails if
    a rule met no frame or a named client never started.
    """

    def __init__(self, wire: Wire, text: str) -> None:
        self._wire = wire
        # As the test has written it.
        self._text = text
        self._has_begun = False
        self._is_over = False
        # True when its failure has been raised.
        self._has_complained = False
        wire.faults.append(self)

    def __str__(self) -> str:
        return self._text

    @property
    def is_in_force(self) -> bool:
        """True from its begin to its end."""
        return self._has_begun and not self._is_over

    @property
    def holds_frames(self) -> bool:
        """True if frames are held that the test must release."""
        return False

    def settle(self) -> None:
        """End the fault, if that has not happened yet."""
        if self.is_in_force:
            self._is_over = True
            self._end()

    def complaint(self) -> str | None:
        """Return why the test fails because of this fault; None if it does not."""
        if self._has_complained:
            return None
        if not self._has_begun:
            return f"{self}: never began; write `await {self}`, or `async with`"
        return self._unmet()

    def __await__(self) -> Generator[Any, None, Self]:
        return self._start().__await__()

    async def __aenter__(self) -> Self:
        return await self._start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.settle()
        complaint = self.complaint()
        self._has_complained = True
        if complaint is not None and kind is None:
            raise NotSeenError(complaint)

    async def _start(self) -> Self:
        if self._has_begun:
            raise KitError(f"{self}: has begun already; make a new one")
        self._has_begun = True
        self._begin()
        return self

    def _require_begun(self) -> None:
        if not self._has_begun:
            raise KitError(f"{self}: write `await` before it, so that it begins")

    # Hooks for each kind of fault.

    def _begin(self) -> None:
        raise NotImplementedError

    def _end(self) -> None:
        raise NotImplementedError

    def _unmet(self) -> str | None:
        """Return why the fault had no effect; None if it had one."""
        raise NotImplementedError
