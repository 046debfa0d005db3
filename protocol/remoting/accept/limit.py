"""Limits the connections that a server accepts, in all and from one address."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from rewindmq.protocol.limits import MAX_CONNECTIONS

_log = logging.getLogger(__name__)
# Protocol seconds between two lines in the log.
_LOG_SECONDS: Final = 10.0


class ConnectionLimit:
    """Counts the connections of all ports of one server.

    RocketMQ has no limit: a peer that opens connections leaves a broker no descriptor for its files.

    Args:
        maximum: connections in all; ``serverMaxConnections``.
        maximum_per_address: connections from one IP address; ``serverMaxConnectionsPerAddress``.
        monotonic: the clock for the intervals of the log.

    Attributes:
        count: connections admitted now.
    """

    def __init__(self, maximum: int, maximum_per_address: int, monotonic: Callable[[], float]) -> None:
        self.maximum = maximum
        self.maximum_per_address = maximum_per_address
        self.count = 0
        self._monotonic = monotonic
        self._counts: dict[str, int] = {}
        self._refused = 0
        self._logged_at = -_LOG_SECONDS

    def admit(self, address: str) -> bool:
        """Count a connection; return False if it must be closed.

        Args:
            address: ``host:port`` of the peer.
        """
        host = _host(address)
        of_host = self._counts.get(host, 0)
        if self.count >= self.maximum:
            self._log_refusal(address, f"{self.count} are open (serverMaxConnections)")
            return False
        if of_host >= self.maximum_per_address:
            self._log_refusal(address, f"{of_host} of this address are open (serverMaxConnectionsPerAddress)")
            return False
        self.count += 1
        self._counts[host] = of_host + 1
        return True

    def release(self, address: str) -> None:
        """Forget a connection that ``admit`` has counted."""
        host = _host(address)
        self.count -= 1
        self._counts[host] -= 1
        if not self._counts[host]:
            del self._counts[host]

    def _log_refusal(self, address: str, reason: str) -> None:
        self._refused += 1
        now = self._monotonic()
        if now - self._logged_at >= _LOG_SECONDS:
            _log.warning("connection of %s refused: %s; %d refused so far", address, reason, self._refused)
            self._logged_at = now


def _host(address: str) -> str:
    return address.rpartition(":")[0]


def connection_limit(
    permitted: int, maximum: int | None, per_address: int | None, monotonic: Callable[[], float]
) -> ConnectionLimit:
    """Return the limit of one server.

    Args:
        permitted: connections that the process's file descriptors permit.
        maximum: ``serverMaxConnections``; None means ``MAX_CONNECTIONS``. More than permitted is lowered.
        per_address: ``serverMaxConnectionsPerAddress``; None means half of the maximum.
        monotonic: see ``ConnectionLimit``.
    """
    if maximum is not None and maximum > permitted:
        _log.warning(
            "serverMaxConnections = %d, but the open files permit %d (ulimit -Hn)", maximum, permitted
        )
    whole = min(MAX_CONNECTIONS if maximum is None else maximum, permitted)
    half = max(1, whole // 2)
    return ConnectionLimit(whole, half if per_address is None else per_address, monotonic)
