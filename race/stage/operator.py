"""The administrator and the producer of every stage: they make topics, send messages and reset offsets."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Final

from rewindmq.client.admin.admin_client import AdminClient
from rewindmq.client.produce.producer import Producer
from rewindmq.protocol.body.registration import TopicConfig
from rewindmq.protocol.errors import ResponseError, RewindMQError
from rewindmq.protocol.message import Message
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.errors import RaceError
from rewindmq.race.history import Lab
from rewindmq.race.stage.journal import Journal
from rewindmq.race.stage.stage import GROUP, TOPIC

_PRODUCER_GROUP: Final = "RaceProducer"
_END: Final = -1
ADMIN: Final = "admin"
PRODUCER: Final = "producer"


class Operator:
    """The administrator and the producer of a race.

    Args:
        millisecond: protocol seconds in a real millisecond.
        topic, group: names of the race's topic and group; several races may share one cluster.
    """

    def __init__(
        self,
        journal: Journal,
        admin_runtime: Runtime,
        producer_runtime: Runtime,
        *,
        profile: Profile,
        mode: ResetMode,
        millisecond: float = 0.001,
        topic: str = TOPIC,
        group: str = GROUP,
    ) -> None:
        self.topic = topic
        self._group = group
        self._journal = journal
        self._admin_runtime = admin_runtime
        self._producer_runtime = producer_runtime
        self._profile = profile.release
        self._mode = mode
        self._millisecond = millisecond
        self._exits = AsyncExitStack()
        self._admin: AdminClient
        self._producer: Producer
        # The offset message id of each message sent to a queue.
        self._sent: dict[MessageQueue, list[str]] = {}

    async def open(self, namesrv: str) -> None:
        """Connect to a running cluster."""
        enter = self._exits.enter_async_context
        self._admin = await enter(AdminClient(namesrv, runtime=self._admin_runtime, profile=self._profile))
        producer = Producer(
            _PRODUCER_GROUP,
            namesrv,
            runtime=self._producer_runtime,
            profile=self._profile,
            # Not the process id: the same seed must give the same history.
            instance_name=PRODUCER,
        )
        self._producer = await enter(producer)

    async def close(self) -> None:
        """Disconnect."""
        await self._exits.aclose()

    async def create_topic(self, addresses: Sequence[str], queues: int) -> None:
        """Create the race's topic at every broker."""
        topic = TopicConfig(topic_name=self.topic, read_queue_nums=queues, write_queue_nums=queues)
        for address in addresses:
            await self._admin.topics.create_and_update_topic_config(address, topic)

    async def send(self, count: int, queue: MessageQueue, tag: str) -> None:
        """See ``Stage.send``."""
        clock, timers = self._producer_runtime.clock, self._producer_runtime.timers
        sent = self._sent.setdefault(queue, [])
        for _ in range(count):
            body = b"message %d" % len(sent)
            result = await self._producer.send(Message(self.topic, body, tag), queue=queue)
            stored_at = clock.now_ms()
            sent.append(result.offset_msg_id)
            self._journal.note(
                PRODUCER,
                Lab.MESSAGE_SENT,
                topic=self.topic,
                broker_name=queue.broker_name,
                queue_id=queue.queue_id,
                offset=result.queue_offset,
                tag=tag,
            )
            while clock.now_ms() <= stored_at:
                await timers.sleep(self._millisecond)

    async def reset(self, offset: int, queue: MessageQueue, *, is_direct: bool = False) -> None:
        """See ``Stage.reset``."""
        timestamp = await self._timestamp(offset, queue)
        mode = "direct" if is_direct else str(self._mode)
        note, what = self._journal.note, {"topic": self.topic, "group": self._group, "mode": mode}
        place = {"broker_name": queue.broker_name, "queue_id": queue.queue_id, "offset": offset}
        note(ADMIN, Lab.RESET_STARTED, **what, **place, timestamp=timestamp)
        try:
            result = await self._admin.resets.reset(self.topic, self._group, timestamp, write=is_direct)
        except RewindMQError as error:
            code = error.code if isinstance(error, ResponseError) else None
            note(ADMIN, Lab.RESET_REFUSED, **what, code=code, remark=str(error))
        else:
            named = [
                [where.broker_name, where.queue_id, target] for where, target in result.offset_table.items()
            ]
            note(ADMIN, Lab.RESET_ACKNOWLEDGED, **what, targets=named)

    async def stored(self, queue: MessageQueue) -> int:
        """See ``Stage.stored``."""
        stats = await self._admin.groups.examine_consume_stats(self._group, self.topic)
        offset = stats.offset_table[queue].consumer_offset
        self._journal.note(
            ADMIN,
            Lab.STORED_OFFSET,
            topic=self.topic,
            group=self._group,
            broker_name=queue.broker_name,
            queue_id=queue.queue_id,
            offset=offset,
        )
        return offset

    async def _timestamp(self, offset: int, queue: MessageQueue) -> int:
        """Return the store time of a message in ms, -1 for the end of its queue.

        Raises:
            RaceError: the queue has no such message.
        """
        sent = self._sent.get(queue, [])
        if offset == len(sent):
            return _END
        if not 0 <= offset < len(sent):
            raise RaceError(
                f"a reset to offset {offset} of queue {queue.queue_id} at {queue.broker_name},"
                f" which has {len(sent)} messages"
            )
        return (await self._admin.messages.view_message(sent[offset])).store_timestamp
