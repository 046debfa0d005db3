"""Telling of a fenced reset the clients that cannot hear of it from a pull, request NOTIFY_QUEUE_RESET.

A pull that is held is answered at once. A client whose queue is over its flow-control bounds, or suspended,
has none and would learn with its next commit only, up to 5 s later. So the connection is remembered that each
queue was last pulled on by a client that knows epochs, and told oneway. Nothing relies on it: whoever is not
reached hears of the reset as before.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from rewindmq.broker.pull.long_polling import HeldPull
from rewindmq.broker.store.tables.consumer_offset import OffsetRecord
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import ConnectionLostError
from rewindmq.protocol.header.reset import NotifyQueueResetRequestHeader
from rewindmq.protocol.remoting.connection import Connection

_log = logging.getLogger(__name__)


class ResetNotifier:
    """Who is to be told, queue by queue."""

    def __init__(self, broker_name: str) -> None:
        self._broker_name = broker_name
        # Group, topic and queue id to the connection.
        self._pulled: dict[tuple[str, str, int], Connection] = {}

    def on_pull(self, connection: Connection, queue: tuple[str, str, int]) -> None:
        """A client that knows epochs pulls; called for every such pull.

        Args:
            queue: group, topic and queue id.
        """
        self._pulled[queue] = connection

    def forget(self, connection: Connection) -> None:
        """The connection is closed."""
        for queue in [queue for queue, known in self._pulled.items() if known is connection]:
            del self._pulled[queue]

    def send(
        self, group: str, topic: str, records: Mapping[int, OffsetRecord], answered: Iterable[HeldPull]
    ) -> None:
        """Tell who pulls the queues that were reset.

        Args:
            records: queue id to what is stored now.
            answered: the pulls that were held until now: whoever sent them knows already.
        """
        knowing = {(pull.connection, pull.header.queue_id) for pull in answered}
        for queue_id, record in records.items():
            connection = self._pulled.get((group, topic, queue_id))
            if connection is None or (connection, queue_id) in knowing:
                continue
            header = NotifyQueueResetRequestHeader(group, topic, self._broker_name, queue_id, *record)
            try:
                connection.send_oneway(RemotingCommand(RequestCode.NOTIFY_QUEUE_RESET, header))
            except ConnectionLostError as error:
                _log.info("reset of %s@%s, queue %d, not told: %s", topic, group, queue_id, error)
