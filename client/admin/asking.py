"""Asks the same of many queues, several at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar

K = TypeVar("K")
T = TypeVar("T")

# Requests that wait for an answer at the same time: enough to keep a broker busy during a round trip, and
# few enough for its thread pools.
AT_ONCE: Final = 32


async def ask_each(
    keys: Iterable[K], work: Callable[[K], Awaitable[T]], *, at_once: int = AT_ONCE
) -> list[T]:
    """Return ``work(key)`` of every key, in the order of the keys.

    If one fails, the others are cancelled.

    Args:
        at_once: works that run at the same time, at least 1.

    Raises:
        Exception: of the first work that failed.
    """
    answers: dict[int, T] = {}
    places = [*keys]
    waiting = enumerate(places)

    async def ask() -> None:
        for place, key in waiting:
            answers[place] = await work(key)

    try:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(min(at_once, len(places))):
                tasks.create_task(ask())
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [answers[place] for place in range(len(answers))]
