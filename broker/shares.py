"""How much of a table each connection uses, with a limit for one connection and a limit for all."""

from __future__ import annotations

from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.remoting.connection import Connection


class Shares:
    """Counts what connections put into one table, so that no connection can fill it alone.

    Args:
        what: the entries, for remarks.
        share: limit of one connection.
        limit: limit of all connections.

    Attributes:
        used: the count of all connections.
    """

    def __init__(self, what: str, share: int, limit: int) -> None:
        self._what = what
        self._share = share
        self._of: dict[Connection, int] = {}
        self.limit = limit
        self.used = 0

    def of(self, connection: Connection) -> int:
        """Return the count of one connection."""
        return self._of.get(connection, 0)

    def has_share(self, connection: Connection, count: int = 1) -> bool:
        """Return True if ``count`` more are within the connection's share."""
        return self._of.get(connection, 0) + count <= self._share

    def has_room(self, connection: Connection, count: int = 1) -> bool:
        """Return True if ``count`` more are within both limits."""
        return self.has_share(connection, count) and self.used + count <= self.limit

    def check(
        self, connection: Connection, count: int = 1, code: ResponseCode = ResponseCode.SYSTEM_ERROR
    ) -> None:
        """Refuse what exceeds a limit.

        Raises:
            RequestError: ``code``, the connection or all connections together would exceed their limit.
        """
        if not self.has_share(connection, count):
            raise RequestError(
                code, f"this connection has {self.of(connection)} {self._what} already, of {self._share}"
            )
        if self.used + count > self.limit:
            raise RequestError(code, f"there are {self.used} {self._what} already, of {self.limit}")

    def add(self, connection: Connection, count: int = 1) -> None:
        """Count what is put into the table; the caller has checked the limits."""
        if count:
            self._of[connection] = self._of.get(connection, 0) + count
            self.used += count

    def remove(self, connection: Connection, count: int = 1) -> None:
        """Count what is removed from the table."""
        left = self._of.get(connection, 0) - count
        assert left >= 0, f"{-left} {self._what} too many removed"
        if left:
            self._of[connection] = left
        else:
            self._of.pop(connection, None)
        self.used -= count

    def forget(self, connection: Connection) -> None:
        """Stop counting for a closed connection."""
        self.used -= self._of.pop(connection, 0)
