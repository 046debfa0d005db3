"""Notifies clients without a suspended pull of a fenced reset (NOTIFY_QUEUE_RESET, 190002).

A fenced reset answers suspended pulls at once, so their clients know of it. A client that has paused a queue,
or has reached its flow-control limits, has no pull at the broker. It would learn of the reset only with its
next commit, up to 5 s later. So the broker remembers, for each queue, the connection of the last pull by an
epoch-aware client, and notifies that client oneway. Correctness does not depend on the notification: a client
that misses it learns of the reset with its next pull or commit.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from rewindmq.broker.pull.long_polling import SuspendedPull
from rewindmq.broker.store.tables.consumer_offset import OffsetRecord
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import ConnectionLostError
from rewindmq.protocol.header.reset import NotifyQueueResetRequestHeader
from rewindmq.protocol.remoting.connection import Connection

_log = logging.getLogger(__name__)


class ResetNotifier:
    """The connection to notify, for each queue."""

    def __init__(self, broker_name: str) -> None:
        self._broker_name = broker_name
        # Group, topic and queue id to the connection.
        self._pulled: dict[tuple[str, str, int], Connection] = {}

    def on_pull(self, connection: Connection, queue: tuple[str, str, int]) -> None:
        """Record a pull of an epoch-aware client; called for every such pull.

        Args:
            queue: group, topic and queue id.
        """
        self._pulled[queue] = connection

    def forget(self, connection: Connection) -> None:
        """Remove a closed connection."""
        for queue in [queue for queue, known in self._pulled.items() if known is connection]:
            del self._pulled[queue]

    def send(
        self, group: str, topic: str, records: Mapping[int, OffsetRecord], answered: Iterable[SuspendedPull]
    ) -> None:
        """Notify the clients that pull from the queues that were reset.

        Args:
            records: queue id to the stored offset and epoch.
            answered: the pulls that the reset woke; their clients know of it already.
        """
        informed = {(pull.connection, pull.header.queue_id) for pull in answered}
        for queue_id, record in records.items():
            connection = self._pulled.get((group, topic, queue_id))
            if connection is None or (connection, queue_id) in informed:
                continue
            header = NotifyQueueResetRequestHeader(group, topic, self._broker_name, queue_id, *record)
            try:
                connection.send_oneway(RemotingCommand(RequestCode.NOTIFY_QUEUE_RESET, header))
            except ConnectionLostError as error:
                _log.info("can not notify of the reset of %s@%s, queue %d: %s", topic, group, queue_id, error)
