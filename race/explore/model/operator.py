"""Administrator and producer of an explored run."""

from __future__ import annotations

from typing import Final

from rewindmq.client.admin.admin_client import AdminClient
from rewindmq.client.produce.producer import Producer
from rewindmq.protocol.body.registration import TopicConfig
from rewindmq.protocol.errors import ResponseError, RewindMQError
from rewindmq.protocol.message import Message
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.explore.model.recorder import ModelJournal
from rewindmq.race.history import Lab
from rewindmq.race.sim.world import World
from rewindmq.race.stage.stage import GROUP, TOPIC

ADMIN: Final = "admin"
ADMIN_HOST: Final = "10.0.0.3"
PRODUCER: Final = "producer"
PRODUCER_HOST: Final = "10.0.0.4"
_PRODUCER_GROUP: Final = "RaceProducer"
_END: Final = -1


class ExploredOperator:
    """The administrator and the producer, each on a host of its own."""

    def __init__(self, world: World, recorder: ModelJournal, mode: ResetMode) -> None:
        self._world = world
        self._recorder = recorder
        self._mode = mode
        self._admin: AdminClient
        self._producer: Producer
        # Store times of each queue's messages, ms.
        self._stored_at: dict[MessageQueue, list[int]] = {}
        self._resets_under_way = 0

    @property
    def is_busy(self) -> bool:
        """True while a reset waits for its response."""
        return self._resets_under_way > 0

    async def open(self, namesrv: str, profile: Profile) -> None:
        """Connect to the cluster, which must be running."""
        world = self._world
        admin_runtime = world.runtime(ADMIN_HOST, probe=self._recorder.probe(ADMIN))
        self._admin = AdminClient(namesrv, runtime=admin_runtime, profile=profile)
        await world.spawn(ADMIN_HOST, self._admin.start())
        self._producer = Producer(
            _PRODUCER_GROUP,
            namesrv,
            runtime=world.runtime(PRODUCER_HOST),
            profile=profile,
            instance_name=PRODUCER,
        )
        await world.spawn(PRODUCER_HOST, self._producer.start())

    def end_producer(self) -> None:
        """Shut down the producer, so that its requests and timers add no choices."""
        self._world.kill(PRODUCER_HOST)

    async def create_topic(self, address: str, queues: int) -> None:
        """Create the race's topic at the broker."""
        topic = TopicConfig(topic_name=TOPIC, read_queue_nums=queues, write_queue_nums=queues)
        await self._world.spawn(ADMIN_HOST, self._admin.topics.create_and_update_topic_config(address, topic))

    async def send(self, queue: MessageQueue) -> None:
        """Send one message. The caller sends at most one per millisecond, so that store times differ."""
        stored_at = self._stored_at.setdefault(queue, [])
        message = Message(TOPIC, b"message %d" % len(stored_at))
        result = await self._world.spawn(PRODUCER_HOST, self._producer.send(message, queue=queue))
        stored_at.append(self._producer.runtime.clock.now_ms())
        place = {"topic": TOPIC, "broker_name": queue.broker_name, "queue_id": queue.queue_id}
        self._recorder.note(PRODUCER, Lab.MESSAGE_SENT, **place, offset=result.queue_offset, tag="")

    async def reset(self, offset: int, queue: MessageQueue) -> None:
        """Reset the group to the store time of the message at ``offset``.

        An offset past the last message resets to the end of the queue.
        """
        known = self._stored_at[queue]
        timestamp = known[offset] if offset < len(known) else _END
        note, what = self._recorder.note, {"topic": TOPIC, "group": GROUP, "mode": str(self._mode)}
        place = {"broker_name": queue.broker_name, "queue_id": queue.queue_id, "offset": offset}
        note(ADMIN, Lab.RESET_STARTED, **what, **place, timestamp=timestamp)
        self._resets_under_way += 1
        try:
            result = await self._world.spawn(
                ADMIN_HOST, self._admin.resets.reset(TOPIC, GROUP, timestamp, write=False)
            )
        except RewindMQError as error:
            code = error.code if isinstance(error, ResponseError) else None
            note(ADMIN, Lab.RESET_REFUSED, **what, code=code, remark=str(error))
        else:
            targets = [
                [where.broker_name, where.queue_id, target] for where, target in result.offset_table.items()
            ]
            note(ADMIN, Lab.RESET_ACKNOWLEDGED, **what, targets=targets)
        finally:
            self._resets_under_way -= 1
