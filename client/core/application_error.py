"""What comes out of the functions of an application."""

from __future__ import annotations

import asyncio
from typing import Final

_ENDS: Final = (KeyboardInterrupt, SystemExit, GeneratorExit)


def ends_the_caller(error: BaseException) -> bool:
    """Whether an exception concerns whoever called the function, and not only what it was called for.

    So does the cancellation of the task that waits for it; a function that cancelled something of its own
    has just failed, as with any other exception (Java catches Throwable).
    """
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and task.cancelling() > 0
    return isinstance(error, _ENDS)
