"""Long work in slices: a generator that yields after about 1 ms of work, and returns the result."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

from rewindmq.protocol.remoting.runtime import Timers

T = TypeVar("T")


async def run_slices(timers: Timers, slices: Generator[None, None, T]) -> T:
    """Run a slice in each turn of the event loop; return the result.

    A caller that stops waiting stops the work between two slices.
    """
    while True:
        try:
            next(slices)
        except StopIteration as end:
            result: T = end.value
            return result
        await timers.sleep(0)


def run_at_once(slices: Generator[None, None, T]) -> T:
    """Run all slices without a pause; return the result."""
    while True:
        try:
            next(slices)
        except StopIteration as end:
            result: T = end.value
            return result
