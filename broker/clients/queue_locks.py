"""Locks of orderly consumers on queues (docs/spec/broker.md B.15).

Source: RocketMQ 4.9.4 ``RebalanceLockManager``. The locks are in memory only: a restart removes all. Only the
clients obey them: the broker serves pulls and commits of a client that holds no lock.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from rewindmq.broker.limits import MAX_QUEUE_LOCKS, MAX_QUEUE_LOCKS_PER_CONNECTION
from rewindmq.broker.shares import Shares
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.remoting.connection import Connection

LOCK_SECONDS: Final = 60.0

_log = logging.getLogger(__name__)

# A group and a queue.
_Key = tuple[str, MessageQueue]


@dataclass(slots=True)
class _Lock:
    """A lock; ``owner`` is the connection that refreshed it last, None if that is closed."""

    client_id: str
    refreshed: float
    owner: Connection | None

    def is_expired(self, now: float) -> bool:
        return now - self.refreshed > LOCK_SECONDS


class RebalanceLockManager:
    """The locks: group to queue to holder.

    As in RocketMQ, the broker does not check that topic and queue exist, or that the client belongs to the
    group, and a lock stays until it expires if its client's connection closes: the client may return, and
    its listener may still run. RocketMQ's table grows for ever. This table holds at most
    ``MAX_QUEUE_LOCKS`` and removes expired locks. One connection has at most
    ``MAX_QUEUE_LOCKS_PER_CONNECTION``. If the table is full, the locks of closed connections go first.

    Args:
        now: returns protocol seconds.

    Attributes:
        shares: the locks of each open connection.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._groups: dict[str, dict[MessageQueue, _Lock]] = {}
        self._of: dict[Connection, dict[_Key, None]] = {}
        # The locks of closed connections, the earliest closed first.
        self._left: dict[_Key, None] = {}
        self.shares = Shares("queue locks", MAX_QUEUE_LOCKS_PER_CONNECTION, MAX_QUEUE_LOCKS)
        self._next_sweep = 0.0

    def __len__(self) -> int:
        return self.shares.used + len(self._left)

    def lock(
        self, connection: Connection, group: str, client_id: str, queues: Collection[MessageQueue]
    ) -> set[MessageQueue]:
        """Acquire or refresh locks.

        Returns:
            The requested queues that the client holds now: they were free, locked by the client, or not
            refreshed for more than 60 s.
        """
        now = self._now()
        if now >= self._next_sweep:
            self._next_sweep = now + LOCK_SECONDS
            self._sweep(now)
        granted: set[MessageQueue] = set()
        refused, without_room = list[MessageQueue](), list[MessageQueue]()
        for queue in queues:
            held = self._groups.get(group, {}).get(queue)
            if held is not None and held.client_id != client_id and not held.is_expired(now):
                refused.append(queue)
            elif self._lock_one(connection, (group, queue), held, client_id, now):
                granted.add(queue)
            else:
                without_room.append(queue)
        # One line for a request: a line for each of thousands of queues would hold the event loop.
        if refused:
            others = "tryLockBatch, %d queues held by others, not %s, group %s; one queue is %s"
            _log.info(others, len(refused), client_id, group, refused[0])
        if without_room:
            _log.warning(
                "tryLockBatch, no room for %d queues, group %s: %d locks, %d of them of %s; one queue is %s",
                len(without_room),
                group,
                len(self),
                self.shares.of(connection),
                connection.remote_address,
                without_room[0],
            )
        return granted

    def _lock_one(
        self, connection: Connection, key: _Key, held: _Lock | None, client_id: str, now: float
    ) -> bool:
        """Acquire or refresh a lock that no other client holds; return False if there is no room."""
        if held is None or held.owner is not connection:
            if not self._has_room(connection, is_new=held is None):
                return False
            if held is not None:
                self._disown(key, held)
            self._of.setdefault(connection, {})[key] = None
            self.shares.add(connection)
        group, queue = key
        self._groups.setdefault(group, {})[queue] = _Lock(client_id, now, connection)
        return True

    def _has_room(self, connection: Connection, *, is_new: bool) -> bool:
        if not self.shares.has_share(connection):
            return False
        if is_new and len(self) >= self.shares.limit and self._left:
            self._remove(next(iter(self._left)))
        return not is_new or len(self) < self.shares.limit

    def unlock(self, group: str, client_id: str, queues: Collection[MessageQueue]) -> None:
        """Release the locks that the client holds on ``queues``."""
        for queue in queues:
            held = self._groups.get(group, {}).get(queue)
            if held is not None and held.client_id == client_id:
                self._remove((group, queue))

    def on_close(self, connection: Connection) -> None:
        """Keep the locks of a closed connection until they expire, or the table is full."""
        for key in list(self._of.get(connection, ())):
            group, queue = key
            held = self._groups[group][queue]
            self._disown(key, held)
            held.owner = None
            self._left[key] = None

    def _remove(self, key: _Key) -> None:
        group, queue = key
        locks = self._groups[group]
        self._disown(key, locks.pop(queue))
        if not locks:
            del self._groups[group]

    def _disown(self, key: _Key, held: _Lock) -> None:
        """Remove a lock from those of its connection, or from those of closed connections."""
        if held.owner is None:
            del self._left[key]
            return
        own = self._of[held.owner]
        del own[key]
        if not own:
            del self._of[held.owner]
        self.shares.remove(held.owner)

    def is_any_held(self, group: str) -> bool:
        """Return True if a consumer of the group holds a lock, that is, consumes in order."""
        now = self._now()
        return any(not held.is_expired(now) for held in self._groups.get(group, {}).values())

    def _sweep(self, now: float) -> None:
        expired = [
            (group, queue)
            for group, locks in self._groups.items()
            for queue, held in locks.items()
            if held.is_expired(now)
        ]
        for key in expired:
            self._remove(key)
