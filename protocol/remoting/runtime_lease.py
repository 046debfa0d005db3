"""Assigns runtimes to clients, and ends a runtime's idle threads when its last client stops.

Clients without a given runtime share one per time scale. A client with a seed has its own runtime.
"""

from __future__ import annotations

import threading
from typing import Final
from weakref import WeakValueDictionary

from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.remoting.runtime import Runtime, system_runtime


class RuntimeLease:
    """One client's use of a runtime, from the client's start to its end.

    When the last client of a runtime stops, its idle threads end. The application closes a runtime that
    it created.

    Attributes:
        runtime: clock, timers, network, threads and random numbers.
    """

    def __init__(self, runtime: Runtime, numbers: _ClientNumbers | None, seed: int | None) -> None:
        self.runtime = runtime
        self._numbers = numbers
        self._seed = seed
        self._number: int | None = None

    def take(self) -> None:
        """Record that the client starts; does nothing if it has started."""
        if self._numbers is None or self._number is not None:
            return
        self._number = self._numbers.take()
        if self._seed is not None:
            # Concurrent clients with one seed need different random numbers, or their client ids collide.
            self.runtime.random.seed(f"{self._seed}/{self._number}" if self._number else self._seed)

    def give_back(self) -> None:
        """Record that the client has stopped; does nothing if it did not start."""
        number, self._number = self._number, None
        if self._numbers is None or number is None:
            return
        is_last = self._numbers.give_back(number)
        if is_last or self._seed is not None:
            self.runtime.workers.close()


class _ClientNumbers:
    """Numbers of the running clients; a new client gets the least free number."""

    def __init__(self) -> None:
        self._taken: set[int] = set()
        # Several threads may have event loops with clients.
        self._guard = threading.Lock()

    def take(self) -> int:
        with self._guard:
            number = next(free for free in range(len(self._taken) + 1) if free not in self._taken)
            self._taken.add(number)
            return number

    def give_back(self, number: int) -> bool:
        """Free a number; return whether no client is left."""
        with self._guard:
            self._taken.remove(number)
            return not self._taken


# By time scale and seed; kept by the leases.
_NUMBERS: Final[WeakValueDictionary[tuple[float, int | None], _ClientNumbers]] = WeakValueDictionary()
# By time scale.
_SHARED: Final[dict[float, Runtime]] = {}


def lease_runtime(runtime: Runtime | None, time_scale: float | None, seed: int | None) -> RuntimeLease:
    """Return the lease of a client with these options.

    Args:
        time_scale: None means 1.

    Raises:
        ClientError: the time scale is not above 0, or a runtime is given with a time scale or seed.
    """
    if runtime is not None:
        if time_scale is not None or seed is not None:
            raise ClientError("runtime has its own time scale and seed: give it alone, or not at all")
        return RuntimeLease(runtime, None, None)
    scale = 1.0 if time_scale is None else time_scale
    try:
        made = _SHARED.get(scale) if seed is None else None
        if made is None:
            made = system_runtime(time_scale=scale, seed=seed)
    except (TypeError, ValueError):
        raise ClientError(f"time_scale must be a number greater than 0, not {time_scale!r}") from None
    if seed is None:
        made = _SHARED.setdefault(scale, made)
    return RuntimeLease(made, _NUMBERS.setdefault((scale, seed), _ClientNumbers()), seed)
