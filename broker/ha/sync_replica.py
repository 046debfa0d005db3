"""Holds the responses to sends until a slave has them (SYNC_MASTER; 4.9.4 ``GroupTransferService``)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.remoting.runtime import Cancellable, Timers

# Called with None if a slave has the message, else with the response code for the sender.
Replicated = Callable[[ResponseCode | None], None]


@dataclass(slots=True)
class _Waiter:
    position: int
    done: Replicated
    timeout: Cancellable


class SlavePositions(Protocol):
    """How far the slaves of a master have the log.

    Attributes:
        acknowledged: the highest log position that a slave has reported.
    """

    acknowledged: int

    def is_slave_ok(self, position: int) -> bool:
        """Return True if a slave is near this log position."""

    def wake(self) -> None:
        """Send new data to the slaves at once."""


class SyncReplica:
    """The waiting sends, in the order of their positions.

    Args:
        slaves: of the master, which calls ``on_acknowledged`` when their position increases.
        timeout_seconds: how long a send waits (``slaveTimeout``), real seconds.
    """

    def __init__(self, slaves: SlavePositions, timers: Timers, timeout_seconds: float) -> None:
        self._slaves = slaves
        self._timers = timers
        self._timeout_seconds = timeout_seconds
        self._waiting: deque[_Waiter] = deque()

    def wait(self, position: int, done: Replicated) -> None:
        """Call ``done`` when a slave has the log up to ``position``; at once if there is no slave."""
        if not self._slaves.is_slave_ok(position):
            done(ResponseCode.SLAVE_NOT_AVAILABLE)
            return
        timeout = self._timers.call_timeout(self._timeout_seconds, self._on_timeout)
        self._waiting.append(_Waiter(position, done, timeout))
        self._slaves.wake()

    def close(self) -> None:
        """Drop the waiting sends; they get no response."""
        for waiter in self._waiting:
            waiter.timeout.cancel()
        self._waiting.clear()

    def on_acknowledged(self) -> None:
        """Call the ``done`` of the sends that a slave has now."""
        while self._waiting and self._waiting[0].position <= self._slaves.acknowledged:
            waiter = self._waiting.popleft()
            waiter.timeout.cancel()
            waiter.done(None)

    def _on_timeout(self) -> None:
        # All waiters have the same timeout, so the first one is due.
        self._waiting.popleft().done(ResponseCode.FLUSH_SLAVE_TIMEOUT)
