"""The time that a call takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, NamedTuple, ParamSpec, TypeVar

Given = ParamSpec("Given")
Result = TypeVar("Result")


class Timed(NamedTuple, Generic[Result]):
    """The result of a call, and the time that it took."""

    seconds: float
    result: Result


def timed(call: Callable[Given, Result], *arguments: Given.args, **named: Given.kwargs) -> Timed[Result]:
    """Call a function once."""
    started = time.perf_counter()
    result = call(*arguments, **named)
    return Timed(time.perf_counter() - started, result)
