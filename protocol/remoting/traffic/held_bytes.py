"""Limits on the memory that the peers of a server take: unfinished frames and unread responses."""

from __future__ import annotations

import logging
from typing import Final, Protocol

from rewindmq.protocol.remoting.state import CloseReason
from rewindmq.protocol.remoting.traffic.repeated_reports import RepeatedReports

logger = logging.getLogger(__name__)

# Seconds for the rest of a frame after its first bytes; 16 MiB need 2.3 Mbit/s.
FRAME_SECONDS: Final = 60.0
# The largest frames of eight peers, or the largest messages of thirty-two, at the same time.
MAX_UNFINISHED_BYTES: Final = 128 << 20
MAX_UNREAD_BYTES: Final = 256 << 20


class Holder(Protocol):
    """A connection that holds bytes; compared and hashed by identity."""

    remote_address: str

    def abort(self, reason: CloseReason) -> None:
        """Close without sending unsent bytes."""


class HeldBytes:
    """The bytes that connections hold, with a limit for all of them.

    Above the limit, the connections that have held bytes for the longest time are closed. A peer that sends
    the rest of its frame, or reads its responses, lets go of its bytes soon, so it is never the oldest for
    long, however many other peers stall.

    Args:
        what: the bytes, for the log.
        limit: bytes in all.
        reason: why connections above the limit are closed.

    Attributes:
        total: bytes held by all connections.
    """

    __slots__ = ("_holders", "_reason", "_what", "limit", "total")

    def __init__(self, what: str, limit: int, reason: CloseReason) -> None:
        self._what = what
        self._reason = reason
        self._holders: dict[Holder, int] = {}
        self.limit = limit
        self.total = 0

    def hold(self, holder: Holder, count: int) -> None:
        """Set the bytes of a connection, which keeps its place in the order of age."""
        self.total += count - self._holders.get(holder, 0)
        self._holders[holder] = count
        while self.total > self.limit:
            oldest = next(iter(self._holders))
            self.release(oldest)
            logger.warning(
                "closing %s: all connections hold more than %d bytes of %s, and it holds them longest",
                oldest.remote_address,
                self.limit,
                self._what,
            )
            oldest.abort(self._reason)

    def release(self, holder: Holder) -> None:
        """Remove a connection that holds no bytes any more."""
        self.total -= self._holders.pop(holder, 0)


class Traffic:
    """What the accepted connections of one process share.

    Args:
        frame_seconds: seconds, not scaled, for the rest of a frame after its first bytes.
        max_unfinished_bytes: bytes of frames whose rest is missing, in all.
        max_unread_bytes: bytes of responses and requests that peers have not read, in all.

    Attributes:
        unfinished: bytes of frames whose rest is missing.
        unread: bytes that peers have not read, of the connections above ``HIGH_WATER_BYTES``.
        foreign: when to report peers that speak another protocol.
    """

    __slots__ = ("foreign", "frame_seconds", "unfinished", "unread")

    def __init__(
        self,
        frame_seconds: float = FRAME_SECONDS,
        max_unfinished_bytes: int = MAX_UNFINISHED_BYTES,
        max_unread_bytes: int = MAX_UNREAD_BYTES,
    ) -> None:
        self.foreign = RepeatedReports()
        self.frame_seconds = frame_seconds
        self.unfinished = HeldBytes("unfinished frames", max_unfinished_bytes, CloseReason.SLOW_FRAME)
        self.unread = HeldBytes("unread responses", max_unread_bytes, CloseReason.OVERFLOW)
