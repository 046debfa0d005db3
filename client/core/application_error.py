"""Decides which exceptions of application functions must reach the caller."""

from __future__ import annotations

import asyncio
from typing import Final

_ALWAYS_RAISED: Final = (KeyboardInterrupt, SystemExit, GeneratorExit)


def must_reach_caller(error: BaseException) -> bool:
    """Return True if the caller must raise this exception again.

    These are KeyboardInterrupt, SystemExit, GeneratorExit, and a CancelledError while the current task itself
    is being cancelled. Any other CancelledError, for example of a task that the function awaited, counts as a
    failure of the function, as every Throwable does in Java.
    """
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0
    return isinstance(error, _ALWAYS_RAISED)
