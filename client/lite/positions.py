"""The positions a lite pull consumer keeps in its queues: where it pulls, and what it commits.

Source: RocketMQ 4.9.4 ``DefaultLitePullConsumerImpl``; see ``lite_pull_consumer``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from rewindmq.client.consume.epoch_consumer import EpochConsumer
from rewindmq.client.consume.queue_reader import QueueReader
from rewindmq.client.lite.assigned_queue import NOWHERE, AssignedQueue
from rewindmq.client.lite.assignment import LiteAssignment
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.message_queue import MessageQueue


class LitePositions(EpochConsumer, QueueReader):
    """Base of ``LitePullConsumer``: what an application may do to the queues it has."""

    _assigned: LiteAssignment

    def pause(self, queues: Iterable[MessageQueue]) -> None:
        """Pull these queues no more; what was pulled before is still polled."""
        self._set_paused(queues, is_paused=True)

    def resume(self, queues: Iterable[MessageQueue]) -> None:
        """Undo ``pause``; felt within a second."""
        self._set_paused(queues, is_paused=False)

    def _set_paused(self, queues: Iterable[MessageQueue], *, is_paused: bool) -> None:
        for queue in queues:
            assigned = self._assigned.find(queue)
            if assigned is not None:
                assigned.is_paused = is_paused

    # Offsets.

    async def seek(self, queue: MessageQueue, offset: int) -> None:
        """Go on at an offset; what was pulled and not polled is thrown away.

        Raises:
            ClientError: not assigned, or out of the queue's range.
            RewindMQError: the broker could not be asked for the range.
        """
        self._require_assigned(queue)
        low, high = await self.min_offset(queue), await self.max_offset(queue)
        if not low <= offset <= high:
            raise ClientError(
                f"Seek offset illegal, seek offset = {offset}, min offset = {low}, max offset = {high}"
            )
        self._assigned.seek(self._require_assigned(queue), offset)

    async def seek_to_begin(self, queue: MessageQueue) -> None:
        """``seek`` to the first message kept."""
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
        """The offset at a moment, ms; see ``search_offset``."""
        return await self.search_offset(queue, timestamp)

    async def fetch_message_queues(self, topic: str) -> list[MessageQueue]:
        """See ``fetch_subscribe_message_queues``."""
        return await self.fetch_subscribe_message_queues(topic)

    def commit_sync(self) -> None:
        """Note what was polled as consumed, in every queue.

        As in RocketMQ this is in memory: the next persist, 5 s away at most, or the end of this consumer
        stores it. ``commit`` with ``persist`` stores it now.

        Raises:
            ClientError: not running.
        """
        self._require_running()
        self._note_consumed(self._assigned)

    async def commit(self, queues: Collection[MessageQueue], *, persist: bool) -> None:
        """``commit_sync`` for some queues, and with ``persist`` store their offsets at once.

        As in RocketMQ, storing some forgets what is noted of all others, which stay where they are at the
        broker until they are committed again.

        Raises:
            ClientError: not running.
        """
        self._require_running()
        self._note_consumed(assigned for assigned in self._assigned if assigned.queue in queues)
        if persist and queues:
            await self.offset_store.persist_all(queues)

    def _note_consumed(self, queues: Iterable[AssignedQueue]) -> None:
        for assigned in queues:
            if assigned.consume_offset != NOWHERE:
                self.offset_store.update(
                    assigned.queue,
                    assigned.consume_offset,
                    increase_only=False,
                    owner=assigned.process_queue,
                )

    async def committed(self, queue: MessageQueue) -> int:
        """The group's offset as noted here, else as stored; -1 when there is none.

        Raises:
            ClientError: not running.
            RewindMQError: the broker could not be asked.
        """
        self._require_running()
        return await self.offset_store.read(queue)
