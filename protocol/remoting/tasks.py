"""Cancels tasks and waits for their end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any


def cancel_tasks(tasks: Iterable[asyncio.Task[Any]]) -> list[asyncio.Task[Any]]:
    """Cancel tasks, except the current one.

    Returns:
        The tasks that have not ended yet.
    """
    current = asyncio.current_task()
    ending = [task for task in tasks if task is not current and not task.done()]
    for task in ending:
        task.cancel()
    return ending


async def end_tasks(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks, except the current one, and wait until all of them have ended.

    All are cancelled before the wait begins. If the caller is cancelled, the wait ends at once, even while a
    task still runs. A task's failure stays with the task.
    """
    ending = cancel_tasks(tasks)
    if ending:
        await asyncio.wait(ending)
