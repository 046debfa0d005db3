"""Times the steps of a request that waits in between."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

from rewindmq.protocol.remoting.stalls.record import Cause, Stalls

T = TypeVar("T")


class TimedCoroutine(Coroutine[Any, Any, T]):
    """Runs another coroutine and records each of its steps between two suspensions."""

    def __init__(self, work: Coroutine[Any, Any, T], stalls: Stalls, cause: Cause, peer: str) -> None:
        self._work = work
        self._stalls = stalls
        self._cause = cause
        self._peer = peer

    def send(self, value: Any) -> Any:
        return self._step(self._work.send, value)

    def throw(self, *error: Any) -> Any:
        return self._step(self._work.throw, *error)

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Generator[Any, Any, T]:
        return self._work.__await__()

    def _step(self, step: Callable[..., Any], *args: Any) -> Any:
        began = self._stalls.now()
        try:
            return step(*args)
        finally:
            self._stalls.passed(began, self._cause, self._peer)
