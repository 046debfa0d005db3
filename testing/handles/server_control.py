"""ServerControl: the part of ``Rmq`` that ends, pauses and misleads the servers."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import AsyncIterator
from typing import Final

from rewindmq.testing.clusters.servers import Servers
from rewindmq.testing.errors import KitError

# Ten years.
_LONGEST_TRAVEL: Final = 315_360_000


class ServerControl(abc.ABC):
    """Faults of the servers (docs/testkit/faults.md); the end of the test undoes all of them."""

    _servers: Servers

    @property
    @abc.abstractmethod
    def time_scale(self) -> float:
        """Real seconds in one second of the cluster's time."""

    @abc.abstractmethod
    async def _registered(self) -> None:
        """Wait until each broker that runs is registered."""

    async def kill(self, name: str) -> None:
        """End a process with SIGKILL: ``"broker-a"``, ``"broker-a-s1"``, ``"namesrv"``.

        Raises:
            KitError: the cluster is not the kit's own.
            ClusterError: there is no such process.
        """
        await self._servers.kill(name)

    async def restart(self, name: str) -> None:
        """Start a process again with its store and port, and wait until the name server knows all brokers."""
        await self._servers.restart(name)
        await self._registered()

    @contextlib.asynccontextmanager
    async def down(self, name: str) -> AsyncIterator[None]:
        """Kill a process at the start of an ``async with`` statement, and restart it at the end."""
        await self.kill(name)
        try:
            yield
        finally:
            await self.restart(name)

    @contextlib.asynccontextmanager
    async def paused(self, name: str) -> AsyncIterator[None]:
        """Pause a process during an ``async with`` statement: it keeps connections, and answers nothing."""
        self._servers.pause(name)
        try:
            yield
        finally:
            self._servers.resume(name)

    @contextlib.asynccontextmanager
    async def disk_full(self, name: str) -> AsyncIterator[None]:
        """Let a broker act as if its disk were full during an ``async with`` statement.

        It refuses messages with SERVICE_NOT_AVAILABLE (14) as soon as the block begins, and serves everything
        else. As RocketMQ does, it also deletes its oldest full segments of the commit log, however young.

        Raises:
            KitError: the cluster is not the kit's own.
            ClusterError: there is no such broker, it is a slave, or it does not run.
        """
        await self._servers.set_disk_full(name, True)
        try:
            yield
        finally:
            await self._servers.set_disk_full(name, False)

    @abc.abstractmethod
    def now_ms(self) -> int:
        """Return the time of the brokers' clocks, in ms since 1970."""

    async def travel_to(self, at_ms: int) -> None:
        """Move the clocks of all brokers forward to a time, unless it has passed; see ``travel``.

        Args:
            at_ms: ms since 1970, such as the time at which a timer message is due.

        Raises:
            KitError: the time is more than ten years away, or the cluster is not the kit's own.
            ClusterError: as ``travel``.
        """
        left_ms = at_ms - self.now_ms()
        if left_ms > 0:
            await self.travel(left_ms / 1_000 / self.time_scale)

    async def travel(self, seconds: float) -> None:
        """Move the clocks of all brokers forward, until the end of the test.

        The end of the test also puts the cluster back to the moment before its first travel.

        What is due by the new time happens at once: delayed messages, timers, revivals of popped messages,
        checks of transactions, retention.
        Connections, locks and registrations do not expire. The clients' clocks do not move.

        Args:
            seconds: of the cluster's time, more than 0, at most ten years.

        Raises:
            KitError: ``seconds`` is out of range, or the cluster is not the kit's own.
            ClusterError: a process is paused or, at the first travel, does not run.
        """
        refuse_wrong_travel(seconds)
        await self._servers.travel(seconds)


def refuse_wrong_travel(seconds: float) -> None:
    """Raise KitError if no travel can have this length."""
    if not 0 < seconds <= _LONGEST_TRAVEL:
        raise KitError(
            f"travel({seconds:g}): the seconds must be more than 0 and at most {_LONGEST_TRAVEL}, which is"
            " ten years; the way back is the end of the test"
        )
