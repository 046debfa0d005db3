"""Context: what all handles of one test share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from rewindmq.client.admin.admin_client import AdminClient
from rewindmq.client.produce.producer import Producer
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.testing.messages.kit_message import KitMessage, kit_message
from rewindmq.testing.waiting.waiter import Waiter

_PULL_MESSAGES = 32


@dataclass(slots=True)
class Context:
    """The parts of one test's kit.

    Attributes:
        producer: returns the test's own producer, started at the first call.
        reset_mode: the mode of resets unless a test names one; None: the broker's.
        sent: the messages that topics of the kit have sent, by id, in the order of the sends.
    """

    admin: AdminClient
    runtime: Runtime
    waiter: Waiter
    producer: Callable[[], Awaitable[Producer]]
    reset_mode: ResetMode | None
    sent: dict[str, KitMessage] = field(default_factory=dict)

    async def queue_bounds(self, topic: str) -> dict[MessageQueue, tuple[int, int]]:
        """Return minimum and maximum offset of each queue of a topic.

        Raises:
            ResponseError: TOPIC_NOT_EXIST (17).
            ClientError: no broker lists a queue.
        """
        table = (await self.admin.topics.examine_topic_stats(topic)).offset_table
        return {queue: (entry.min_offset, entry.max_offset) for queue, entry in sorted(table.items())}

    async def first_since(self, topic: str, at_ms: int) -> dict[MessageQueue, tuple[int, int | None]]:
        """Return for each queue the first message with a store timestamp of ``at_ms`` or later.

        Returns:
            Its offset and store timestamp in ms; the queue's end and None if there is no such message.

        Raises:
            RewindMQError: as ``queue_bounds``, or a broker refused.
        """
        return {
            queue: await self._first_since(queue, at_ms, begin, end)
            for queue, (begin, end) in (await self.queue_bounds(topic)).items()
        }

    async def _first_since(
        self, queue: MessageQueue, at_ms: int, begin: int, end: int
    ) -> tuple[int, int | None]:
        if begin == end:
            return end, None
        # RocketMQ 4.9 returns the neighbour that is nearer in time, which may be the earlier one.
        offset = max(begin, min(await self.admin.messages.search_offset(queue, at_ms), end - 1))
        stored_at = await self._store_timestamp(queue, offset)
        while stored_at >= at_ms and offset > begin:
            before = await self._store_timestamp(queue, offset - 1)
            if before < at_ms:
                return offset, stored_at
            offset, stored_at = offset - 1, before
        while stored_at < at_ms:
            offset += 1
            if offset == end:
                return end, None
            stored_at = await self._store_timestamp(queue, offset)
        return offset, stored_at

    async def _store_timestamp(self, queue: MessageQueue, offset: int) -> int:
        return (await self.admin.messages.message_at(queue, offset)).store_timestamp

    async def read(self, topic: str) -> list[KitMessage]:
        """Return all messages of a topic, by queue and offset. No group is left behind.

        Raises:
            RewindMQError: as ``queue_bounds``, or a broker refused.
        """
        return [kit_message(message) for message in await self.read_whole(topic)]

    async def read_whole(self, topic: str) -> list[MessageExt]:
        """Do the same with all that a message has."""
        messages: list[MessageExt] = []
        for queue, (offset, end) in (await self.queue_bounds(topic)).items():
            while offset < end:
                page = await self.admin.messages.pull_messages(queue, offset, _PULL_MESSAGES)
                messages += page.messages
                if page.next_begin_offset <= offset:
                    break
                offset = page.next_begin_offset
        return messages
