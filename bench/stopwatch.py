"""How long a call takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, NamedTuple, ParamSpec, TypeVar

Given = ParamSpec("Given")
Result = TypeVar("Result")


class Timed(NamedTuple, Generic[Result]):
    """A call that was made."""

    seconds: float
    result: Result


def timed(call: Callable[Given, Result], *arguments: Given.args, **named: Given.kwargs) -> Timed[Result]:
    """Call it once."""
    started = time.perf_counter()
    result = call(*arguments, **named)
    return Timed(time.perf_counter() - started, result)
