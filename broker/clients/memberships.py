"""The online groups of each connection, of producers or of consumers, within the broker's limits."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from rewindmq.broker.limits import (
    MAX_GROUP_CHANNELS,
    MAX_GROUPS,
    MAX_GROUPS_PER_CONNECTION,
    check_room,
)
from rewindmq.broker.shares import Shares
from rewindmq.protocol.remoting.connection import Connection


class Memberships:
    """Which groups a connection is in.

    Args:
        what: the groups, for remarks.
        groups: the names of all online groups; changes with them.
    """

    def __init__(self, what: str, groups: Collection[str]) -> None:
        self._what = what
        self._groups = groups
        self._max_groups = MAX_GROUPS
        # In order of registration.
        self._of: dict[Connection, dict[str, None]] = {}
        self.shares = Shares(what, MAX_GROUPS_PER_CONNECTION, MAX_GROUP_CHANNELS)

    def of(self, connection: Connection) -> list[str]:
        """Return the groups of a connection."""
        return list(self._of.get(connection, ()))

    def check(self, connection: Connection, groups: Iterable[str]) -> None:
        """Refuse a heartbeat whose groups do not fit.

        Raises:
            RequestError: SYSTEM_ERROR (1), the connection would be in too many groups, there would be too
                many groups, or too many connections in groups.
        """
        own = self._of.get(connection, {})
        joined = [group for group in dict.fromkeys(groups) if group not in own]
        self.shares.check(connection, len(joined))
        new = sum(group not in self._groups for group in joined)
        if new:
            check_room(self._what, len(self._groups), self._max_groups - new + 1)

    def add(self, connection: Connection, group: str) -> None:
        """Record that a connection is in a group; ``check`` has accepted it."""
        own = self._of.setdefault(connection, {})
        if group not in own:
            own[group] = None
            self.shares.add(connection)

    def remove(self, connection: Connection, group: str) -> None:
        """Record that a connection has left a group."""
        own = self._of[connection]
        del own[group]
        if not own:
            del self._of[connection]
        self.shares.remove(connection)
