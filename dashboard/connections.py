"""LimitedProtocol: uvicorn's connections, with a limit on their number and a time limit for each head."""

from __future__ import annotations

import asyncio
from typing import Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

# A connection without a request may hold 64 KiB of a head, and as many unread bytes.
MAX_CONNECTIONS: Final = 512
# Seconds from the connection, or from the first byte of a later request, until its head is complete.
HEAD_SECONDS: Final = 30.0


class LimitedProtocol(H11Protocol):
    """A connection of a visitor; uvicorn itself limits only the pause between two requests."""

    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Close the connection if there are too many."""
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            transport.abort()
        else:
            self._limit_head()

    def data_received(self, data: bytes) -> None:
        """Let the time of a head run until it is complete."""
        super().data_received(data)
        self._limit_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the limit."""
        self._forget()
        super().connection_lost(exc)

    def _limit_head(self) -> None:
        # A body that goes on after the response has been sent is discarded, for as long as a head may take.
        is_refused = self.conn.our_state is h11.DONE and self.conn.their_state is h11.SEND_BODY
        if self.conn.their_state is not h11.IDLE and not is_refused:
            self._forget()
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _forget(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
