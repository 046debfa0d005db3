"""Ending tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any


def cancel_tasks(tasks: Iterable[asyncio.Task[Any]]) -> list[asyncio.Task[Any]]:
    """Cancel tasks, except the one that calls this.

    Returns:
        The tasks that have not ended yet.
    """
    current = asyncio.current_task()
    ending = [task for task in tasks if task is not current and not task.done()]
    for task in ending:
        task.cancel()
    return ending


async def end_tasks(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks, except the one that calls this, and wait until all of them have ended.

    All are cancelled before the wait begins. A caller that is cancelled itself stops waiting at once, even
    for a task that does not end. A task's failure stays with the task.
    """
    ending = cancel_tasks(tasks)
    if ending:
        await asyncio.wait(ending)
