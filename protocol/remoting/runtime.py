"""The ``Runtime``: a process's clock, timers, network, threads and random numbers.

Three kinds exist: real sockets in real time, real sockets with scaled timers, and one process under virtual
time (``rewindmq.race.sim``). Code below an entry point uses only the runtime for the time, timers,
connections, threads and random numbers.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import resource
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from rewindmq.protocol.limits import MAPPED_FILES_SHARE, MAX_CONNECTIONS, RESERVED_DESCRIPTORS
from rewindmq.protocol.points import Failpoint, Probe
from rewindmq.protocol.remoting.accept.listener import listen_tcp
from rewindmq.protocol.remoting.speedups import SpeedupsModule
from rewindmq.protocol.remoting.stalls.record import Stalls
from rewindmq.protocol.remoting.workers import ThreadWorkers

T = TypeVar("T")


class Cancellable(Protocol):
    """A timer that can be cancelled."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """A wall clock and a monotonic clock, which must not be mixed.

    Attributes:
        scale: wall-clock seconds that pass in one protocol second.
    """

    @property
    def scale(self) -> float: ...

    def now_ms(self) -> int:
        """Return wall-clock ms since 1970: for born and store timestamps and heartbeats' subVersion."""

    def monotonic(self) -> float:
        """Return protocol seconds, for ages and expiries; scaled like the timers."""


class Timers(Protocol):
    """Waits. ``seconds`` are protocol seconds, RocketMQ's configured values before scaling."""

    def call_later(self, seconds: float, callback: Callable[..., object], *args: Any) -> Cancellable:
        """Call ``callback(*args)`` once, ``seconds`` from now."""

    async def sleep(self, seconds: float) -> None:
        """Wait for ``seconds``; cancellable."""

    def call_timeout(self, seconds: float, callback: Callable[..., object], *args: Any) -> Cancellable:
        """Like ``call_later``, but never scaled: for the time limit of a peer's response. Scaled limits would
        cause time-outs on a busy machine that a real cluster does not have."""


class Listener(Protocol):
    """A bound, listening endpoint."""

    @property
    def host(self) -> str: ...

    @property
    def port(self) -> int: ...

    def close(self) -> None:
        """Stop accepting; accepted connections stay."""


class Network(Protocol):
    """Listens for and opens connections."""

    async def listen(self, factory: Callable[[], asyncio.Protocol], host: str, port: int) -> Listener:
        """Bind and listen; port 0 picks a free one.

        Raises:
            OSError: the address cannot be bound.
        """

    async def connect(
        self, factory: Callable[[], asyncio.Protocol], host: str, port: int
    ) -> tuple[asyncio.Transport, asyncio.Protocol]:
        """Open a connection.

        Raises:
            OSError: refused or unreachable.
        """


class Workers(Protocol):
    """Threads for blocking calls: plain listeners, fsync."""

    def run(self, function: Callable[..., T], *args: Any) -> Awaitable[T]:
        """Run ``function(*args)`` off the event loop."""

    def close(self) -> None:
        """Release the threads without waiting for running functions."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """The outside world of one process, passed down from its entry point."""

    clock: Clock
    timers: Timers
    network: Network
    workers: Workers
    random: random.Random = field(default_factory=random.Random)
    # Called at trace points; None costs one check per point.
    probe: Probe | None = None
    # Awaited where another thread of RocketMQ may run between two steps; None costs one check per place.
    failpoint: Failpoint | None = None
    # Records what holds the event loop; None outside a server process.
    stalls: Stalls | None = None
    # A counter that gives each number once in the process; the numbers identify short-lived objects.
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    # How many connections a server may accept, so that descriptors remain for its files.
    max_connections: int = MAX_CONNECTIONS
    # The native kernels that a broker may use; None means pure Python, as in every simulation.
    speedups: SpeedupsModule | None = None


class SystemClock:
    """The operating system's clocks; ``scale`` 0.01 lets a hundred protocol seconds pass in one."""

    __slots__ = ("monotonic", "scale")

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale
        # A server reads this clock for every request. Unscaled it is the system's own function.
        self.monotonic: Callable[[], float] = time.monotonic if scale == 1.0 else self._scaled_monotonic

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def _scaled_monotonic(self) -> float:
        return time.monotonic() / self.scale


@dataclass(frozen=True, slots=True)
class LoopTimers:
    """Timers of the running event loop, every scheduled wait multiplied by ``scale``."""

    scale: float = 1.0

    def call_later(self, seconds: float, callback: Callable[..., object], *args: Any) -> Cancellable:
        return asyncio.get_running_loop().call_later(seconds * self.scale, callback, *args)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds * self.scale)

    def call_timeout(self, seconds: float, callback: Callable[..., object], *args: Any) -> Cancellable:
        return asyncio.get_running_loop().call_later(seconds, callback, *args)


class TcpNetwork:
    """TCP through the running event loop, without Nagle's algorithm.

    Host names bind to IPv4 only, so that port 0 gives one port and old clients can parse the addresses
    (docs/spec/protocol.md T18). An IPv6 literal binds to IPv6.
    """

    async def listen(self, factory: Callable[[], asyncio.Protocol], host: str, port: int) -> Listener:
        return await listen_tcp(factory, host, port)

    async def connect(
        self, factory: Callable[[], asyncio.Protocol], host: str, port: int
    ) -> tuple[asyncio.Transport, asyncio.Protocol]:
        return await asyncio.get_running_loop().create_connection(factory, host, port)


def system_runtime(
    *, time_scale: float = 1.0, seed: int | None = None, max_workers: int = 20, probe: Probe | None = None
) -> Runtime:
    """Return the runtime of a real process.

    Args:
        time_scale: factor on every scheduled wait, 0 < scale; 0.01 turns the reset's 10 s into 0.1 s.
        seed: makes the process's random choices repeatable.
        max_workers: threads for plain (non-async) message listeners; RocketMQ's default is 20.
    """
    if not time_scale > 0:
        raise ValueError(f"time_scale must be greater than 0, not {time_scale}")
    return Runtime(
        clock=SystemClock(time_scale),
        timers=LoopTimers(time_scale),
        network=TcpNetwork(),
        workers=ThreadWorkers(max_workers),
        random=random.Random(seed),
        probe=probe,
        max_connections=_connection_descriptors(),
    )


def _connection_descriptors() -> int:
    """Return how many file descriptors of this process accepted connections may take, at least 1."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return sys.maxsize
    return max(1, limit - limit // MAPPED_FILES_SHARE - RESERVED_DESCRIPTORS)
