"""Consume offsets as the client keeps them: in memory, and at the broker (``behaviour.md`` C.8).

Clustering groups keep theirs at the broker; broadcasting members in a local file, see ``local_offset_store``.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import TYPE_CHECKING

from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import ResponseError, RewindMQError
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.points import Point

if TYPE_CHECKING:
    from rewindmq.client.instance import ClientInstance

NO_OFFSET = -1

_log = logging.getLogger(__name__)


class OffsetMemory:
    """The in-memory half of both stores."""

    def __init__(self, instance: ClientInstance, group: str) -> None:
        self._instance = instance
        self._group = group
        self._table: dict[MessageQueue, int] = {}
        self._frozen: set[MessageQueue] = set()

    def update(self, queue: MessageQueue, offset: int, *, increase_only: bool) -> None:
        """Note progress. ``increase_only`` keeps a larger value; a frozen entry never changes."""
        table = self._table
        known = table.get(queue)
        if known is not None and ((increase_only and known >= offset) or queue in self._frozen):
            return
        table[queue] = offset
        probe = self._instance.runtime.probe
        if probe is not None:
            probe(Point.OFFSET_UPDATED, self.details(queue, offset))

    def update_and_freeze(self, queue: MessageQueue, offset: int) -> None:
        """Set a value that stays until ``remove`` (5.2.0, pull request 7635)."""
        self.update(queue, offset, increase_only=False)
        self._frozen.add(queue)

    def read_memory(self, queue: MessageQueue) -> int:
        """The offset in memory, or -1."""
        return self._table.get(queue, NO_OFFSET)

    def forget(self, queue: MessageQueue) -> None:
        """Drop the memory entry."""
        self._table.pop(queue, None)
        self._frozen.discard(queue)

    def offsets(self) -> dict[MessageQueue, int]:
        """A copy of the memory entries."""
        return dict(self._table)

    def details(self, queue: MessageQueue, offset: int) -> dict[str, object]:
        """What a probe is told about one queue's offset."""
        return {
            "client_id": self._instance.client_id,
            "group": self._group,
            "topic": queue.topic,
            "broker_name": queue.broker_name,
            "queue_id": queue.queue_id,
            "offset": offset,
        }


class RemoteOffsetStore(OffsetMemory):
    """Offsets of a clustering group, stored at the brokers.

    Commits are oneway: a lost one is noticed by nobody, as in RocketMQ.
    """

    async def load(self) -> None:
        """Nothing: every queue is asked for when it is taken over."""

    async def read(self, queue: MessageQueue) -> int:
        """The offset in memory, else the broker's, which is then in memory too; -1 when there is none.

        Raises:
            RewindMQError: the broker could not be asked, or (v53) refused for another reason than having
                no offset.
        """
        offset = self._table.get(queue, NO_OFFSET)
        return offset if offset >= 0 else await self.read_store(queue)

    async def read_store(self, queue: MessageQueue) -> int:
        """The broker's offset, see ``read``."""
        instance = self._instance
        address = await instance.offset_address(queue)
        try:
            offset = await instance.api.consumer_offset(address, self._group, queue)
        except ResponseError as error:
            if error.code == ResponseCode.QUERY_NOT_FOUND or instance.switches.any_error_means_no_offset:
                return NO_OFFSET
            raise
        self.update(queue, offset, increase_only=False)
        return offset

    async def persist_all(self, queues: Collection[MessageQueue]) -> None:
        """Commit the memory entries of ``queues``, changed or not, and forget all others."""
        for queue in list(self._table):
            if queue in queues:
                await self.persist(queue)
            else:
                self.forget(queue)

    async def persist(self, queue: MessageQueue) -> None:
        """Commit one memory entry; errors are logged and swallowed."""
        offset = self._table.get(queue)
        if offset is None:
            return
        try:
            address = await self._instance.offset_address(queue)
            probe = self._instance.runtime.probe
            if probe is not None:
                probe(Point.COMMIT_SENT, self.details(queue, offset))
            await self._instance.api.update_consumer_offset(address, self._group, queue, offset)
        except RewindMQError as error:
            _log.warning("updateConsumeOffsetToBroker exception, %s: %s", queue, error)

    async def remove(self, queue: MessageQueue) -> None:
        """Forget one memory entry."""
        self.forget(queue)
