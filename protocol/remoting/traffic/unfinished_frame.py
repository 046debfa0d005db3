"""The unfinished frame of an accepted connection: its bytes and its deadline."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from rewindmq.protocol.remoting.runtime import Cancellable, Timers
from rewindmq.protocol.remoting.traffic.held_bytes import Holder, Traffic

logger = logging.getLogger(__name__)

_SLACK_SECONDS = 0.001


class Reader(Holder, Protocol):
    """The connection of an unfinished frame.

    Attributes:
        is_reading: False while the connection does not read, because the peer does not.
    """

    @property
    def is_reading(self) -> bool: ...

    def on_late_frame(self) -> None:
        """End the connection: the rest of a frame did not arrive in time."""


class UnfinishedFrame:
    """Counts the bytes of a frame whose rest is missing, and ends the wait for the rest.

    One timer serves many frames: it is set for the first of them, and set again only if a frame is unfinished
    when it fires.

    Args:
        now: returns the event loop's time in seconds.

    Attributes:
        began: when the frame began, or its time began again; None if there is no unfinished frame.
    """

    __slots__ = ("_connection", "_now", "_timer", "_timers", "_traffic", "began")

    def __init__(
        self,
        connection: Reader,
        traffic: Traffic,
        timers: Timers,
        now: Callable[[], float],
    ) -> None:
        # None once the connection is closed. It refers to this object; a cycle would keep its memory until
        # the garbage collector runs, thousands of connections later.
        self._connection: Reader | None = connection
        self._traffic = traffic
        self._timers = timers
        self._now = now
        self.began: float | None = None
        self._timer: Cancellable | None = None

    def update(self, buffered: int, *, is_new: bool) -> None:
        """Record the state after a read.

        Args:
            buffered: bytes of the unfinished frame; 0 if there is none.
            is_new: True if the read completed the frame before.
        """
        connection, unfinished = self._connection, self._traffic.unfinished
        if connection is None:
            return
        if is_new:
            unfinished.release(connection)
            self.began = None
        if not buffered:
            return
        if self.began is None:
            self.began = self._now()
            if self._timer is None:
                self._arm(self._traffic.frame_seconds)
        unfinished.hold(connection, buffered)

    def restart(self) -> None:
        """Give the frame the whole time again: the connection reads again."""
        if self.began is not None:
            self.began = self._now()

    def close(self) -> None:
        """Forget the frame: the connection is closed."""
        self.began = None
        if self._connection is not None:
            self._traffic.unfinished.release(self._connection)
            self._connection = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, seconds: float) -> None:
        # Not scaled: the time that a peer needs does not depend on this process's clock.
        self._timer = self._timers.call_timeout(seconds, self._check)

    def _check(self) -> None:
        self._timer = None
        connection = self._connection
        if self.began is None or connection is None:
            return
        if not connection.is_reading:
            # The rest may wait in the socket.
            self.restart()
        left = self.began + self._traffic.frame_seconds - self._now()
        if left > _SLACK_SECONDS:
            self._arm(left)
        else:
            logger.warning(
                "closing %s: the rest of a frame did not arrive within %g s",
                connection.remote_address,
                self._traffic.frame_seconds,
            )
            connection.on_late_frame()
