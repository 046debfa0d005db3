"""The states of a connection and the reasons for its end."""

from __future__ import annotations

from enum import Enum, StrEnum
from types import MappingProxyType
from typing import Final


class ConnectionState(Enum):
    """What a connection still sends and accepts; ``TRANSITIONS`` has the changes."""

    CONNECTING = "connecting"  # no transport yet
    OPEN = "open"
    DRAINING = "draining"  # responses are still sent, new requests are ignored
    CLOSING = "closing"  # written bytes are still sent, nothing more is accepted
    CLOSED = "closed"


TRANSITIONS: Final = MappingProxyType(
    {
        ConnectionState.CONNECTING: frozenset({ConnectionState.OPEN, ConnectionState.CLOSED}),
        ConnectionState.OPEN: frozenset(
            {ConnectionState.DRAINING, ConnectionState.CLOSING, ConnectionState.CLOSED}
        ),
        ConnectionState.DRAINING: frozenset({ConnectionState.CLOSING, ConnectionState.CLOSED}),
        ConnectionState.CLOSING: frozenset({ConnectionState.CLOSED}),
        ConnectionState.CLOSED: frozenset[ConnectionState](),
    }
)


class CloseReason(StrEnum):
    """Why a connection ended; finer than RocketMQ's channel events CLOSE, EXCEPTION and IDLE."""

    PEER = "closed by the peer"
    ERROR = "broken"
    IDLE = "idle"
    BAD_FRAME = "bad frame"
    OVERFLOW = "the peer does not read"
    LIMIT = "too many connections"
    SLOW_FRAME = "the rest of a frame is missing"
    LOCAL = "closed here"
