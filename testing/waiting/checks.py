"""Conditions that a test writes as functions: they return a true value as soon as they hold."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from rewindmq.testing.waiting.waiter import Condition

# Returns a true value if the condition holds. An AssertionError means that it does not hold yet.
Check = Callable[[], Any | Awaitable[Any]]


def condition_of(check: Check) -> Condition:
    """Return a test's check as a condition of ``Waiter``."""

    async def condition() -> str | None:
        try:
            answer = check()
            if inspect.isawaitable(answer):
                answer = await answer
        except AssertionError as error:
            return f"AssertionError: {error}".rstrip(": ")
        if answer:
            return None
        if answer is None:
            return "None; a check must return a true value when it holds"
        return repr(answer)

    return condition


def name_of(check: Check) -> str:
    """Return a check's name for failures, with the file and line of its definition."""
    name = getattr(check, "__qualname__", repr(check)).rpartition("<locals>.")[2]
    code = getattr(check, "__code__", None)
    return name if code is None else f"{name} ({code.co_filename}:{code.co_firstlineno})"
