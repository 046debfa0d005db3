"""Decides which exceptions of application functions must reach the caller."""

from __future__ import annotations

import asyncio
from typing import Final

_ENDS: Final = (KeyboardInterrupt, SystemExit, GeneratorExit)


def must_reach_caller(error: BaseException) -> bool:
    """Return True if the caller must raise this exception again.

    That holds for ends of the process, and for a cancellation of the task that waits for the function. A
    function that cancelled something of its own has only failed, as with any other exception (Java catches
    Throwable).
    """
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0
    return isinstance(error, _ENDS)
