"""Notifies clients without a suspended pull of a fenced reset (NOTIFY_QUEUE_RESET, 190002).

A fenced reset answers suspended pulls at once, so their clients know of it. A client that has paused a queue,
or has reached its flow-control limits, has no pull at the broker. It would learn of the reset only with its
next commit, up to 5 s later. So the broker remembers, for each queue, the connection of the last pull by an
epoch-aware client, and notifies that client oneway. Correctness does not depend on the notification: a client
that misses it learns of the reset with its next pull or commit.
"""

from __future__ import annotations

import logging

from rewindmq.broker.limits import MAX_NOTIFIED_QUEUES, MAX_NOTIFIED_QUEUES_PER_CONNECTION
from rewindmq.broker.shares import Shares
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import ConnectionLostError
from rewindmq.protocol.header.reset import NotifyQueueResetRequestHeader
from rewindmq.protocol.remoting.connection import Connection

_log = logging.getLogger(__name__)


_Queue = tuple[str, str, int]


class ResetNotifier:
    """The connection to notify, for each queue.

    A connection that pulls from more queues than its share is not notified of the oldest of them.

    Attributes:
        shares: the queues of each connection.
    """

    def __init__(self, broker_name: str) -> None:
        self._broker_name = broker_name
        # Group, topic and queue id to the connection.
        self._pulled: dict[_Queue, Connection] = {}
        self._of: dict[Connection, dict[_Queue, None]] = {}
        self.shares = Shares("queues to notify", MAX_NOTIFIED_QUEUES_PER_CONNECTION, MAX_NOTIFIED_QUEUES)

    def on_pull(self, connection: Connection, queue: _Queue) -> None:
        """Record a pull of an epoch-aware client; called for every such pull.

        Args:
            queue: group, topic and queue id.
        """
        known = self._pulled.get(queue)
        if known is connection:
            return
        if known is not None:
            self._remove(known, queue)
        if not self.shares.has_share(connection):
            self._remove(connection, next(iter(self._of[connection])))
        if self.shares.has_room(connection):
            self._pulled[queue] = connection
            self._of.setdefault(connection, {})[queue] = None
            self.shares.add(connection)

    def forget(self, connection: Connection) -> None:
        """Remove a closed connection."""
        for queue in list(self._of.get(connection, ())):
            self._remove(connection, queue)

    def _remove(self, connection: Connection, queue: _Queue) -> None:
        del self._pulled[queue]
        own = self._of[connection]
        del own[queue]
        if not own:
            del self._of[connection]
        self.shares.remove(connection)

    def puller(self, queue: _Queue) -> Connection | None:
        """Return the connection to notify of a reset of the queue."""
        return self._pulled.get(queue)

    def notify(
        self, connection: Connection, group: str, topic: str, queue_id: int, offset: int, epoch: int
    ) -> None:
        """Notify one client of the reset of one queue.

        Args:
            offset, epoch: after the reset.
        """
        header = NotifyQueueResetRequestHeader(group, topic, self._broker_name, queue_id, offset, epoch)
        try:
            connection.send_oneway(RemotingCommand(RequestCode.NOTIFY_QUEUE_RESET, header))
        except ConnectionLostError as error:
            _log.info("can not notify of the reset of %s@%s, queue %d: %s", topic, group, queue_id, error)
