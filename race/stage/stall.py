"""Stops a step of a consumer where a thread of RocketMQ could stall (``Runtime.failpoint``)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from rewindmq.protocol.points import Point
from rewindmq.protocol.remoting.runtime import Timers
from rewindmq.race.errors import RaceError
from rewindmq.race.history import Kind


class StallRule:
    """Stops the first step with matching details until ``release``; lives in the consumer's process.

    Args:
        on_caught: called when the step is stopped.
    """

    def __init__(self, kind: str, wanted: Mapping[str, Any], on_caught: Callable[[], None]) -> None:
        self._kind = kind
        self._wanted = wanted
        self._on_caught = on_caught
        self._is_spent = False
        self._released = asyncio.Event()

    def release(self) -> None:
        """Let the step continue; a step that comes later is not stopped."""
        self._is_spent = True
        self._released.set()

    def matches(self, point: Point, details: Mapping[str, Any]) -> bool:
        """True if this is the step to stop."""
        return (
            not self._is_spent
            and point == self._kind
            and all(details.get(name) == value for name, value in self._wanted.items())
        )

    async def stop(self) -> None:
        """Wait until released."""
        self._is_spent = True
        self._on_caught()
        await self._released.wait()


class StallGate:
    """The ``Runtime.failpoint`` of a consumer's process: applies the first rule that matches."""

    def __init__(self) -> None:
        self.rules: list[StallRule] = []

    async def __call__(self, point: Point, details: dict[str, Any]) -> None:
        for rule in self.rules:
            if rule.matches(point, details):
                await rule.stop()
                return


class StallHold:
    """Implements ``HoldHandle`` for one stalled step; lives in the laboratory's process.

    Args:
        release: lets the step continue.
        patience: lower bound of every wait's timeout, in protocol seconds.
    """

    def __init__(
        self, kind: Kind, timers: Timers, release: Callable[[], None], patience: float = 0.0
    ) -> None:
        self._kind = kind
        self._timers = timers
        self._patience = patience
        self._release_step = release
        self._is_caught = asyncio.Event()

    @property
    def caught(self) -> int:
        return int(self._is_caught.is_set())

    def catch(self) -> None:
        """Note that the step is stopped."""
        self._is_caught.set()

    async def wait(self, count: int = 1, *, seconds: float = 60.0) -> None:
        """See ``HoldHandle``; a stall catches one step at most."""
        if count > 1:
            raise RaceError(f"a stall at {self._kind} catches one step, not {count}")
        limit = asyncio.get_running_loop().create_future()
        timer = self._timers.call_later(max(seconds, self._patience), limit.set_result, None)
        caught = asyncio.ensure_future(self._is_caught.wait())
        try:
            await asyncio.wait((caught, limit), return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
            caught.cancel()
        if not self._is_caught.is_set():
            raise RaceError(f"no step reached {self._kind} within {seconds:g} s")

    def release(self) -> None:
        self._release_step()

    def drop(self) -> None:
        """Raise RaceError: a step can be delayed, not left out."""
        raise RaceError(f"a step stalled at {self._kind} can be released, not dropped")

    def refuse(self, code: int, remark: str) -> None:
        """Raise RaceError: a step is not a request that could be refused."""
        raise RaceError(f"a step stalled at {self._kind} can be released, not refused")
