"""Locks of orderly consumers on queues (docs/spec/broker.md B.15).

Source: RocketMQ 4.9.4 ``RebalanceLockManager``. The locks are in memory only: a restart removes all. Only the
clients obey them: the broker serves pulls and commits of a client that holds no lock.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from rewindmq.broker.limits import MAX_QUEUE_LOCKS
from rewindmq.protocol.message_queue import MessageQueue

LOCK_SECONDS: Final = 60.0

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Lock:
    client_id: str
    refreshed: float

    def is_expired(self, now: float) -> bool:
        return now - self.refreshed > LOCK_SECONDS


class QueueLocks:
    """The locks: group to queue to holder.

    As in RocketMQ, the broker does not check that topic and queue exist, or that the client belongs to the
    group. RocketMQ's table grows for ever. This table holds at most ``MAX_QUEUE_LOCKS`` and removes expired
    locks. Clients see no difference, because any client can take an expired lock.

    Args:
        now: returns protocol seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._groups: dict[str, dict[MessageQueue, _Lock]] = {}
        self._count = 0
        self._next_sweep = 0.0

    def lock(self, group: str, client_id: str, queues: Collection[MessageQueue]) -> set[MessageQueue]:
        """Acquire or refresh locks.

        Returns:
            The requested queues that the client holds now: they were free, locked by the client, or not
            refreshed for more than 60 s.
        """
        now = self._now()
        if now >= self._next_sweep:
            self._next_sweep = now + LOCK_SECONDS
            self._sweep(now)
        return {queue for queue in queues if self._lock_one(group, client_id, queue, now)}

    def _lock_one(self, group: str, client_id: str, queue: MessageQueue, now: float) -> bool:
        held = self._groups.get(group, {}).get(queue)
        if held is None:
            if self._count >= MAX_QUEUE_LOCKS:
                _log.warning("tryLockBatch, there are %d locks already, %s %s", self._count, group, queue)
                return False
            self._groups.setdefault(group, {})[queue] = _Lock(client_id, now)
            self._count += 1
            return True
        if held.client_id != client_id:
            if not held.is_expired(now):
                _log.info(
                    "tryLockBatch, %s held by %s, not %s, group %s", queue, held.client_id, client_id, group
                )
                return False
            held.client_id = client_id
        held.refreshed = now
        return True

    def unlock(self, group: str, client_id: str, queues: Collection[MessageQueue]) -> None:
        """Release the locks that the client holds on ``queues``."""
        locks = self._groups.get(group)
        if locks is None:
            return
        for queue in queues:
            held = locks.get(queue)
            if held is not None and held.client_id == client_id:
                del locks[queue]
                self._count -= 1
        if not locks:
            del self._groups[group]

    def is_any_held(self, group: str) -> bool:
        """Return True if a consumer of the group holds a lock, that is, consumes in order."""
        now = self._now()
        return any(not held.is_expired(now) for held in self._groups.get(group, {}).values())

    def _sweep(self, now: float) -> None:
        for group, locks in list(self._groups.items()):
            kept = {queue: held for queue, held in locks.items() if not held.is_expired(now)}
            self._count -= len(locks) - len(kept)
            if kept:
                self._groups[group] = kept
            else:
                del self._groups[group]
