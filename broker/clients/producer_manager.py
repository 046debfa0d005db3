"""Which connections produce for which group (RocketMQ 4.9.4 ``ProducerManager``)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from rewindmq.broker.clients.channel import ClientChannel
from rewindmq.broker.limits import MAX_GROUPS, check_room
from rewindmq.protocol.remoting.connection import Connection

# Tries to find a live one (``GET_AVAILABLE_CHANNEL_RETRY_COUNT``).
_AVAILABLE_TRIES: Final = 3


class ProducerManager:
    """Producer groups and their channels; kept in memory only."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[Connection, ClientChannel]] = {}
        self._turn = 0

    def register(self, group: str, channel: ClientChannel) -> None:
        """Add a channel to a group, or refresh it.

        Raises:
            RequestError: 1, the group is new and there are ``MAX_GROUPS``.
        """
        channels = self._groups.get(group)
        if channels is None:
            check_room("producer groups", len(self._groups), MAX_GROUPS)
            channels = self._groups[group] = {}
        channels[channel.connection] = channel

    def unregister(self, group: str, connection: Connection) -> None:
        """Forget one channel; a group without channels goes too."""
        channels = self._groups.get(group)
        if channels is not None:
            channels.pop(connection, None)
            if not channels:
                del self._groups[group]

    def on_close(self, connection: Connection) -> None:
        """Forget a connection in every group."""
        for group in list(self._groups):
            self.unregister(group, connection)

    def expire(self, now: float) -> list[ClientChannel]:
        """Forget the channels without heartbeat for 120 s; the caller closes their connections."""
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
        """The group's channels in order of registration; empty when nobody produces for it."""
        return self._groups.get(group, {}).values()

    def groups(self) -> Collection[str]:
        """Names of the groups that have a channel."""
        return self._groups.keys()

    def available(self, group: str) -> Connection | None:
        """A live connection of the group, another one each time; None when none of three tried is."""
        channels = list(self.channels(group))
        if not channels:
            return None
        self._turn += 1
        for further in range(_AVAILABLE_TRIES):
            connection = channels[(self._turn + further) % len(channels)].connection
            if not connection.is_closed:
                return connection
        return None
