"""A client's connection to the broker, with the data of its last heartbeat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rewindmq.protocol.body import connection as bodies
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.version import LanguageCode

# ConsumerManager and ProducerManager.CHANNEL_EXPIRED_TIMEOUT of RocketMQ 4.9.4, seconds.
CHANNEL_EXPIRED_SECONDS = 120.0
# Timeout of a client's response to a request of the broker, seconds, not scaled: 4.9.4
# ``Broker2Client#callClient``.
CALL_CLIENT_SECONDS: Final = 10.0
# pyrocketmq always announces this version, although it is newer (docs/spec/protocol.md T23).
_PYROCKETMQ_VERSION: Final = 1


@dataclass(slots=True)
class ClientChannel:
    """RocketMQ's ``ClientChannelInfo``.

    Attributes:
        connection: the key of every table; two clients with the same id are two channels.
        language, version: of the frame that carried the latest heartbeat.
        last_update: protocol seconds of that heartbeat.
    """

    connection: Connection
    client_id: str
    language: int
    version: int
    last_update: float

    def is_expired(self, now: float) -> bool:
        return now - self.last_update > CHANNEL_EXPIRED_SECONDS

    def described(self) -> bodies.Connection:
        """Return the channel as the connection lists of a group show it."""
        language = LanguageCode.parse(self.language).name
        return bodies.Connection(self.client_id, self.connection.remote_address, language, self.version)

    def is_older_than(self, version: int) -> bool:
        """Return True if the client announces a version before ``version``."""
        if self.language == LanguageCode.PYTHON and self.version == _PYROCKETMQ_VERSION:
            return False
        return self.version < version
