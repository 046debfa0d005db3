"""LitePullConsumer: the client pulls ahead, the application polls and commits (``behaviour.md`` C.14).

Source: RocketMQ 4.9.4 ``DefaultLitePullConsumer`` and ``DefaultLitePullConsumerImpl``; what 5.3.3 does
otherwise is in the profile.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from enum import StrEnum
from typing import Final, Unpack

from rewindmq.client.assigned_queue import NOWHERE, AssignedQueue, ConsumeRequests
from rewindmq.client.checks import make_subscription, require_topic
from rewindmq.client.epoch_consumer import EpochConsumer
from rewindmq.client.lite_assignment import LiteAssignment
from rewindmq.client.lite_pull_options import LitePullOptionKwargs, LitePullOptions
from rewindmq.client.local_offset_store import LocalFileOffsetStore
from rewindmq.client.offset_store import RemoteOffsetStore
from rewindmq.client.process_queue import ProcessQueue
from rewindmq.client.push_options import parse_consume_timestamp
from rewindmq.client.queue_reader import QueueReader
from rewindmq.client.queue_watch import QueueChangeListener, QueueWatch
from rewindmq.client.rebalance import Rebalance
from rewindmq.client.start_offset import start_offset
from rewindmq.protocol.body.heartbeat import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    MessageModel,
    SubscriptionData,
)
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.points import Point
from rewindmq.protocol.remoting.runtime import Runtime

_HALF_HOUR_MS: Final = 30 * 60 * 1000


class SubscriptionType(StrEnum):
    """How it comes by its queues; decided by the first call of ``subscribe`` or ``assign``."""

    NONE = "NONE"
    SUBSCRIBE = "SUBSCRIBE"
    ASSIGN = "ASSIGN"


class LitePullConsumer(EpochConsumer, QueueReader):
    """A consumer whose application polls for messages that were pulled ahead.

    ::

        consumer = LitePullConsumer("G", "127.0.0.1:9876")
        consumer.subscribe("TopicTest")
        async with consumer:
            while True:
                for message in await consumer.poll():
                    ...

    A message counts as consumed once it was polled. Resets of the classic kind (220) pass it by; see
    ``docs/lite-pull.md`` for what the others do to it.

    Args:
        group: the consumer group.
        namesrv_addr: ``host:port[;host:port]``; None takes the environment's ``NAMESRV_ADDR``.
        runtime: None takes the system's.
        options: see ``LitePullOptions`` and ``ClientConfig``.

    Raises:
        ClientError: a bad group name, no or a bad name server address, an option out of range.
    """

    def __init__(
        self,
        group: str,
        namesrv_addr: str | None = None,
        *,
        runtime: Runtime | None = None,
        **options: Unpack[LitePullOptionKwargs],
    ) -> None:
        own = {name: options.pop(name) for name in LitePullOptions.__slots__ if name in options}  # type: ignore[misc]
        super().__init__(group, namesrv_addr, runtime, **options)  # type: ignore[misc]
        self.options = replace(LitePullOptions(), **own)
        self.options.check()
        self.requests = ConsumeRequests(self.runtime)
        self.subscription_type = SubscriptionType.NONE
        self._assigned = LiteAssignment(self, self.requests)
        self._owned: dict[MessageQueue, ProcessQueue] = {}
        self._wanted: list[MessageQueue] = []
        self._watch = QueueWatch(self.fetch_message_queues)
        self._next_auto_commit = 0.0
        self._made_at = self.runtime.clock.now_ms()

    # Where messages come from.

    def subscribe(self, topic: str, expression: str = "*") -> None:
        """Consume this member's share of a topic; calling it again replaces the expression.

        Args:
            expression: ``*``, or tags separated by ``||``.

        Raises:
            ClientError: a bad topic name or expression, or queues were assigned before.
        """
        subscription = make_subscription(topic, expression, self.runtime.clock.now_ms())
        self._set_type(SubscriptionType.SUBSCRIBE)
        self.subscriptions[topic] = subscription
        if self.is_running:
            self.instance.spawn(self._announce())

    def unsubscribe(self, topic: str) -> None:
        """Stop pulling a topic; what was pulled and not polled is thrown away, and nothing committed."""
        self.subscriptions.pop(topic, None)
        for queue in [queue for queue in self._owned if queue.topic == topic]:
            self.rebalancer.drop(queue, self._owned.pop(queue))

    def assign(self, queues: Collection[MessageQueue]) -> None:
        """Consume exactly these queues, whoever else does; replaces those assigned before.

        Raises:
            ClientError: no queues, or topics were subscribed to before.
        """
        if not queues:
            raise ClientError("Message queues can not be null or empty.")
        for queue in queues:
            require_topic(queue.topic)
        self._set_type(SubscriptionType.ASSIGN)
        self._wanted = list(dict.fromkeys(queues))
        if self.is_running:
            self._assigned.replace(self._wanted, self._owned)

    @property
    def assignment(self) -> list[MessageQueue]:
        """The queues pulled now, sorted."""
        return sorted(assigned.queue for assigned in self._assigned)

    def register_topic_message_queue_change_listener(self, topic: str, listener: QueueChangeListener) -> None:
        """Have a function called with a topic and all its queues when there are others than before.

        Looked at 10 s after the start and then every ``topic_metadata_check_interval_millis``. Called before
        the start: what there is then is known already, and not told.

        Raises:
            ClientError: a bad topic name.
        """
        require_topic(topic)
        self._watch.add(topic, listener)

    # Messages.

    async def poll(self, timeout: int | None = None) -> list[MessageExt]:
        """The next batch of one queue, at most ``pull_batch_size`` messages; empty when none came in time.

        With ``auto_commit`` progress up to earlier polls is noted here, every 5 s.

        Args:
            timeout: ms, at least 0; None: ``poll_timeout_millis``.

        Raises:
            ClientError: not running, or a negative timeout.
        """
        self._require_running()
        millis = self.options.poll_timeout_millis if timeout is None else timeout
        if millis < 0:
            raise ClientError("Timeout must not be negative")
        now = self.runtime.clock.monotonic
        if self.options.auto_commit and now() >= self._next_auto_commit:
            self.commit_sync()
            self._next_auto_commit = now() + self.options.auto_commit_interval_millis / 1000
        deadline = now() + millis / 1000
        while True:
            messages = self._take()
            left = deadline - now()
            if messages or left <= 0 or not self.is_running:
                return messages
            await self.requests.wait(left)

    def _take(self) -> list[MessageExt]:
        request = self.requests.take()
        if request is None:
            return []
        assigned, messages = request
        assigned.consume_offset = assigned.process_queue.remove_messages(messages)
        self._emit_polled(assigned, messages)
        return messages

    def _emit_polled(self, assigned: AssignedQueue, messages: list[MessageExt]) -> None:
        probe = self.runtime.probe
        if probe is not None:
            offsets = [message.queue_offset for message in messages]
            place = self.offset_store.details(assigned.queue, offsets[0], assigned.process_queue)
            details = {**place, "offsets": offsets, "count": len(offsets)}
            probe(Point.LISTENER_CALLED, details)
            probe(Point.LISTENER_RETURNED, details)

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
            reason = ", may be rebalancing" if self.subscription_type is SubscriptionType.SUBSCRIBE else ""
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

    # Life.

    def _set_type(self, kind: SubscriptionType) -> None:
        if self.subscription_type not in (SubscriptionType.NONE, kind):
            raise ClientError("Subscribe and assign are mutually exclusive.")
        self.subscription_type = kind

    def _owns_instance_name(self) -> bool:
        return self.options.message_model is MessageModel.CLUSTERING

    async def _start(self) -> None:
        options, instance = self.options, self.instance
        if options.message_model is MessageModel.CLUSTERING:
            self.offset_store = RemoteOffsetStore(instance, self.group, self._owned, self._commit_fenced)
        else:
            root = options.offset_root
            self.offset_store = LocalFileOffsetStore(instance, self.group, root, self._owned)
        await self.offset_store.load()
        self.rebalancer = Rebalance(
            instance,
            self.group,
            options.message_model,
            options.allocate_strategy,
            self.offset_store,
            self._owned,
            start_offset=self.start_offset,
            dispatch=self._assigned.take_over,
            on_drop=self._assigned.dropped,
            on_change=_no_news,
            replaces_stuck=False,
        )
        instance.register_consumer(self)
        await instance.start()

    async def _started(self) -> None:
        for topic in list(self.subscriptions):
            await self.instance.routes.refresh(topic)
        if self.subscription_type is SubscriptionType.ASSIGN:
            self._assigned.replace(self._wanted, self._owned)
        await self._watch.begin(self.runtime, self.options.topic_metadata_check_interval_millis / 1000)

    async def _stop(self) -> None:
        await self._watch.stop()
        await self.persist_offsets()
        await self.instance.unregister_consumer(self.group)
        self.rebalancer.drop_all()
        self.requests.wake()

    async def _announce(self) -> None:
        await self.instance.send_heartbeats()
        for topic in list(self.subscriptions):
            await self.instance.routes.refresh(topic)

    # What its queues ask.

    def begin_again(self, queue: MessageQueue, process_queue: ProcessQueue, offset: int, epoch: int) -> None:
        """See ``EpochConsumer``; a pause outlasts it, a seek that no pull has heeded yet does not."""
        before = self._assigned.find(queue)
        super().begin_again(queue, process_queue, offset, epoch)
        after = self._assigned.find(queue)
        if before is not None and after is not None and after is not before:
            after.is_paused = before.is_paused
            after.consume_offset = offset

    def subscription_of(self, topic: str) -> SubscriptionData:
        """What is wanted of a topic: everything, where queues were assigned."""
        return self.subscriptions.get(topic) or make_subscription(topic, "*", 0)

    async def start_offset(self, queue: MessageQueue) -> int:
        """Where the group stands in a queue, or where a new group begins.

        Raises:
            RewindMQError: the broker could not tell.
        """
        value = self.options.consume_timestamp
        moment = self._made_at - _HALF_HOUR_MS if value is None else parse_consume_timestamp(value)
        return await start_offset(queue, self.options.consume_from_where, moment, self)

    async def stored_offset(self, queue: MessageQueue) -> int:
        """See ``start_offset.OffsetSource``; memory first, as opposed to push consumers."""
        return await self.offset_store.read(queue)

    # What the instance asks (``GroupConsumer``).

    def heartbeat_data(self) -> ConsumerData:
        return ConsumerData(
            self.group,
            ConsumeType.CONSUME_ACTIVELY,
            self.options.message_model,
            ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
            list(self.subscriptions.values()),
        )

    async def rebalance(self) -> bool:
        if self.subscription_type is not SubscriptionType.SUBSCRIBE:
            return True
        return await self.rebalancer.run(self.subscriptions)

    def resettable(self) -> None:
        """A reset passes it by (``behaviour.md`` C.14, D.6)."""


async def _no_news(topic: str) -> None:
    """Queues are taken over and given up one by one."""
