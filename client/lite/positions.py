"""The offsets of a lite pull consumer: where it pulls, and what it commits.

Source: RocketMQ 4.9.4 ``DefaultLitePullConsumerImpl``; see ``lite_pull_consumer``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from rewindmq.client.consume.epoch_consumer import EpochConsumer
from rewindmq.client.consume.offset_store import NO_OFFSET
from rewindmq.client.consume.queue_reader import QueueReader
from rewindmq.client.lite.assigned_queue import AssignedQueue
from rewindmq.client.lite.assignment import LiteAssignment
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.message_queue import MessageQueue


class LitePositions(EpochConsumer, QueueReader):
    """Base of ``LitePullConsumer``: pause, seek and commit assigned queues."""

    _assigned: LiteAssignment

    def pause(self, queues: Iterable[MessageQueue]) -> None:
        """Stop pulling these queues; ``poll`` still returns the messages pulled before."""
        self._set_paused(queues, is_paused=True)

    def resume(self, queues: Iterable[MessageQueue]) -> None:
        """Undo ``pause``; pulling continues within a second."""
        self._set_paused(queues, is_paused=False)

    def _set_paused(self, queues: Iterable[MessageQueue], *, is_paused: bool) -> None:
        for queue in queues:
            assigned = self._assigned.find(queue)
            if assigned is not None:
                assigned.is_paused = is_paused

    # Offsets.

    async def seek(self, queue: MessageQueue, offset: int) -> None:
        """Continue at an offset; discard messages that wait for ``poll``.

        Raises:
            ClientError: the queue is not assigned, or the offset is out of its range.
            RewindMQError: the broker did not return the range.
        """
        self._require_assigned(queue)
        low, high = await self.min_offset(queue), await self.max_offset(queue)
        if not low <= offset <= high:
            raise ClientError(
                f"Seek offset illegal, seek offset = {offset}, min offset = {low}, max offset = {high}"
            )
        self._assigned.seek(self._require_assigned(queue), offset)

    async def seek_to_begin(self, queue: MessageQueue) -> None:
        """``seek`` to the first retained message."""
        await self.seek(queue, await self.min_offset(queue))

    async def seek_to_end(self, queue: MessageQueue) -> None:
        """``seek`` past the last message."""
        await self.seek(queue, await self.max_offset(queue))

    def _require_assigned(self, queue: MessageQueue) -> AssignedQueue:
        self._require_running()
        assigned = self._assigned.find(queue)
        if assigned is None:
            reason = ", may be rebalancing" if self.subscriptions else ""
            raise ClientError(f"The message queue is not in assigned list{reason}, message queue: {queue}")
        return assigned

    async def offset_for_timestamp(self, queue: MessageQueue, timestamp: int) -> int:
        """Return the offset at a time in ms; see ``search_offset``."""
        return await self.search_offset(queue, timestamp)

    async def fetch_message_queues(self, topic: str) -> list[MessageQueue]:
        """See ``fetch_subscribe_message_queues``."""
        return await self.fetch_subscribe_message_queues(topic)

    def commit_sync(self) -> None:
        """Record the polled messages of every queue as consumed.

        As in RocketMQ, this only changes memory. The offsets are stored within 5 s, or when the consumer
        stops; ``commit`` with ``persist`` stores them at once.

        Raises:
            ClientError: the consumer is not running.
        """
        self._require_running()
        self._record_consumed(self._assigned)

    async def commit(self, queues: Collection[MessageQueue], *, persist: bool) -> None:
        """Do ``commit_sync`` for these queues; with ``persist``, also store their offsets at once.

        As in RocketMQ, storing these offsets removes the recorded offsets of all other queues from memory.
        The broker keeps its old offsets of them until you commit again.

        Raises:
            ClientError: the consumer is not running.
        """
        self._require_running()
        self._record_consumed(assigned for assigned in self._assigned if assigned.queue in queues)
        if persist and queues:
            await self.offset_store.persist_all(queues)

    def _record_consumed(self, queues: Iterable[AssignedQueue]) -> None:
        for assigned in queues:
            if assigned.consume_offset != NO_OFFSET:
                self.offset_store.update(
                    assigned.queue,
                    assigned.consume_offset,
                    increase_only=False,
                    owner=assigned.process_queue,
                )

    async def committed(self, queue: MessageQueue) -> int:
        """Return the group's offset from memory, else from the offset store; -1 if there is none.

        Raises:
            ClientError: the consumer is not running.
            RewindMQError: the broker did not return the offset.
        """
        self._require_running()
        return await self.offset_store.read(queue)
