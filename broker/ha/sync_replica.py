"""Holds the responses to sends until a slave has them (SYNC_MASTER; 4.9.4 ``GroupTransferService``)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from rewindmq.broker.ha.master import HaMaster
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.remoting.runtime import Cancellable, Timers

# Called with None if a slave has the message, else with the response code for the sender.
Replicated = Callable[[ResponseCode | None], None]


@dataclass(slots=True)
class _Waiter:
    position: int
    done: Replicated
    timeout: Cancellable


class SyncReplica:
    """The waiting sends, in the order of their positions.

    Args:
        timeout_seconds: how long a send waits (``slaveTimeout``), real seconds.
    """

    def __init__(self, master: HaMaster, timers: Timers, timeout_seconds: float) -> None:
        self._master = master
        self._timers = timers
        self._timeout_seconds = timeout_seconds
        self._waiting: deque[_Waiter] = deque()
        master.on_acknowledged = self._on_acknowledged

    def wait(self, position: int, done: Replicated) -> None:
        """Call ``done`` when a slave has the log up to ``position``; at once if there is no slave."""
        if not self._master.is_slave_ok(position):
            done(ResponseCode.SLAVE_NOT_AVAILABLE)
            return
        timeout = self._timers.call_timeout(self._timeout_seconds, self._on_timeout)
        self._waiting.append(_Waiter(position, done, timeout))
        self._master.wake()

    def close(self) -> None:
        """Drop the waiting sends; they get no response."""
        for waiter in self._waiting:
            waiter.timeout.cancel()
        self._waiting.clear()

    def _on_acknowledged(self) -> None:
        while self._waiting and self._waiting[0].position <= self._master.acknowledged:
            waiter = self._waiting.popleft()
            waiter.timeout.cancel()
            waiter.done(None)

    def _on_timeout(self) -> None:
        # All waiters have the same timeout, so the first one is due.
        self._waiting.popleft().done(ResponseCode.FLUSH_SLAVE_TIMEOUT)
