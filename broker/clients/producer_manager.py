"""Online producer groups and their connections (RocketMQ 4.9.4 ``ProducerManager``)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from rewindmq.broker.clients.channel import ClientChannel
from rewindmq.broker.clients.memberships import Memberships
from rewindmq.protocol.remoting.connection import Connection

# How many channels to try (``GET_AVAILABLE_CHANNEL_RETRY_COUNT``).
_AVAILABLE_TRIES: Final = 3


class ProducerManager:
    """Producer groups and their channels; in memory only.

    Attributes:
        memberships: the groups of each connection.
    """

    def __init__(self) -> None:
        self._groups: dict[str, dict[Connection, ClientChannel]] = {}
        # Client id to connections, the newest last, and in how many groups each has the id.
        self._clients: dict[str, dict[Connection, int]] = {}
        self.memberships = Memberships("producer groups", self._groups.keys())
        self._turn = 0

    def check(self, connection: Connection, groups: Iterable[str]) -> None:
        """Refuse a heartbeat whose groups do not fit.

        Raises:
            RequestError: SYSTEM_ERROR (1), see ``Memberships.check``.
        """
        self.memberships.check(connection, groups)

    def register(self, group: str, channel: ClientChannel) -> None:
        """Add a channel to a group, or replace the connection's old one; ``check`` has accepted it."""
        channels = self._groups.setdefault(group, {})
        self._remove_client(channels.get(channel.connection))
        channels[channel.connection] = channel
        connections = self._clients.setdefault(channel.client_id, {})
        connections[channel.connection] = connections.get(channel.connection, 0) + 1
        self.memberships.add(channel.connection, group)

    def unregister(self, group: str, connection: Connection) -> None:
        """Remove one channel, and the group if it was the last."""
        channels = self._groups.get(group)
        if channels is None:
            return
        channel = channels.pop(connection, None)
        if channel is not None:
            self._remove_client(channel)
            self.memberships.remove(connection, group)
            if not channels:
                del self._groups[group]

    def _remove_client(self, channel: ClientChannel | None) -> None:
        if channel is None:
            return
        connections = self._clients[channel.client_id]
        connections[channel.connection] -= 1
        if not connections[channel.connection]:
            del connections[channel.connection]
            if not connections:
                del self._clients[channel.client_id]

    def on_close(self, connection: Connection) -> None:
        """Remove a connection from every group."""
        for group in self.memberships.of(connection):
            self.unregister(group, connection)

    def expire(self, now: float) -> list[ClientChannel]:
        """Remove and return the channels without heartbeat for 120 s; the caller closes their connections."""
        expired = [
            (group, channel)
            for group, channels in self._groups.items()
            for channel in channels.values()
            if channel.is_expired(now)
        ]
        for group, channel in expired:
            self.unregister(group, channel.connection)
        return [channel for _, channel in expired]

    def channels(self, group: str) -> Collection[ClientChannel]:
        """Return the group's channels in order of registration; empty for an unknown group."""
        return self._groups.get(group, {}).values()

    def groups(self) -> Collection[str]:
        """Return the names of the online groups."""
        return self._groups.keys()

    def find_client(self, client_id: str) -> Connection | None:
        """Return the newest open connection of the producers with this client id; None if there is none."""
        for connection in reversed(self._clients.get(client_id, {})):
            if not connection.is_closed:
                return connection
        return None

    def available(self, group: str) -> Connection | None:
        """Return an open connection of the group, in turn; None if three in a row are closed."""
        channels = list(self.channels(group))
        if not channels:
            return None
        self._turn += 1
        for further in range(_AVAILABLE_TRIES):
            connection = channels[(self._turn + further) % len(channels)].connection
            if not connection.is_closed:
                return connection
        return None
