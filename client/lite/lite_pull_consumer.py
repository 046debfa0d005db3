"""LitePullConsumer: the client pulls ahead, the application polls and commits (docs/spec/client.md C.14).

Source: RocketMQ 4.9.4 ``DefaultLitePullConsumer`` and ``DefaultLitePullConsumerImpl``. The profile holds what
5.3.3 does differently.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from pathlib import Path

from rewindmq.client.consume.allocate import AllocateAveragely, AllocateStrategy
from rewindmq.client.consume.filter_check import check_filters
from rewindmq.client.consume.local_offset_store import parse_offset_root
from rewindmq.client.consume.manual_pull import BLOCK_HOLD_MS
from rewindmq.client.consume.options import choose_start, start_timestamp
from rewindmq.client.consume.process_queue import ProcessQueue
from rewindmq.client.consume.rebalance import Rebalance
from rewindmq.client.consume.selector import MessageSelector, make_subscription
from rewindmq.client.consume.start_offset import start_offset
from rewindmq.client.core.checks import require_topic
from rewindmq.client.core.client_config import (
    DEFAULT_API_TIMEOUT_MS,
    DEFAULT_CALLBACK_THREADS,
    DEFAULT_INSTANCE_NAME,
    make_config,
)
from rewindmq.client.core.profile import ClientProfile
from rewindmq.client.lite.assigned_queue import AssignedQueue, ConsumeRequests
from rewindmq.client.lite.assignment import LiteAssignment
from rewindmq.client.lite.options import LitePullOptions
from rewindmq.client.lite.positions import LitePositions
from rewindmq.client.lite.queue_watch import QueueChangeListener, QueueListeners
from rewindmq.protocol.body.heartbeat import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    MessageModel,
    SubscriptionData,
)
from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.options import parse_choice, refuse_unknown_options
from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.protocol.remoting.runtime_lease import lease_runtime


class SubscriptionType(StrEnum):
    """How the consumer gets its queues; the first call of ``subscribe`` or ``assign`` decides."""

    NONE = "NONE"
    SUBSCRIBE = "SUBSCRIBE"
    ASSIGN = "ASSIGN"


class LitePullConsumer(LitePositions):
    """Pulls messages ahead for an application that polls them.

    ::

        consumer = LitePullConsumer("G", "127.0.0.1:9876")
        consumer.subscribe("TopicTest")
        async with consumer:
            while True:
                for message in await consumer.poll():
                    ...

    A message counts as consumed once it was polled. The consumer ignores classic resets (220);
    docs/lite-pull.md describes the other reset modes.

    Args:
        group: the consumer group.
        namesrv_addr: ``host:port`` of the name servers, separated by ``;``; None (default) takes the
            environment's ``NAMESRV_ADDR``.
        consume_from: where a group without a stored offset starts: "first", "last" (default) or "timestamp".
        consume_from_where: RocketMQ's name of ``consume_from``.
        consume_timestamp: where "timestamp" starts, ``yyyyMMddHHmmss`` in UTC, or ms since the epoch as an
            int; None (default): half an hour before the consumer was constructed.
        message_model: "clustering" (default): the group's consumers share the messages; "broadcasting": each
            consumer gets every message.
        auto_commit: ``poll`` also calls ``commit_sync`` for the messages of earlier polls; default True.
        auto_commit_interval_millis: least time between these calls, ms, at least 1; default 5,000.
        pull_batch_size: most messages per pull, and so per ``poll``, at least 1; default 10.
        pull_threshold_for_all: no queue is pulled while the number of batches that wait for ``poll``, times
            ``pull_batch_size``, is larger; at least 1; default 10,000.
        pull_threshold_for_queue: cached messages of a queue above which it is not pulled, at least 1;
            default 1,000.
        pull_threshold_size_for_queue: the same in whole MiB, at least 1; default 100.
        consume_max_span: distance of the first and last cached offset above which a queue is not pulled, at
            least 1; default 2,000.
        poll_timeout_millis: how long ``poll`` waits by default, ms, at least 0; default 5,000.
        broker_suspend_max_time_millis: how long a broker may suspend a pull at the end of a queue, ms, at
            least 1; default 20,000.
        consumer_timeout_millis_when_suspend: how long the consumer waits for the answer to such a pull, ms,
            not less than ``broker_suspend_max_time_millis``; default 30,000.
        topic_metadata_check_interval_millis: how often the queues of topics with a change listener are
            checked, ms, at least 1; default 30,000.
        allocate_strategy: divides the queues among the consumers; None (default): averagely.
        offset_root: directory of broadcasting offsets; None (default): ``~/.rocketmq_offsets``.
        profile: the release to imitate: "v42", "v49" (default) or "v53"; or a variant of v49, "epoch" or
            "unguarded" (docs/consumer.md).
        serialize_type: serialization type of requests, "json", "rocketmq" or "msgpack"; None (default)
            negotiates.
        time_scale: factor on every scheduled wait, above 0; default 1. Use the cluster's (docs/time.md).
        seed: makes random choices repeatable; None (default): random choices differ from run to run.
        runtime: clock, timers, network and threads of a simulated world (docs/time.md), instead of
            ``time_scale`` and ``seed``.
        instance_name: clients of one process with equal names share connections and timers. "DEFAULT" (the
            default) becomes a unique name, in v42 the process id. A broadcasting consumer keeps "DEFAULT".
        client_ip: the address in the client id and in message ids; default "127.0.0.1".
        unit_name: a suffix of the client id; default "", none.
        client_callback_executor_threads: how many resets and pull callbacks may run at the same time, at
            least 1; default 4.
        mq_client_api_timeout: timeout in ms of heartbeats, route and consumer-list queries, and filter
            checks, at least 1; default 3,000.

    Raises:
        ClientError: an invalid group name, a missing or invalid name server address, or an option out of
            range.
    """

    @refuse_unknown_options
    def __init__(
        self,
        group: str,
        namesrv_addr: str | None = None,
        *,
        consume_from: ConsumeFromWhere | str | None = None,
        consume_from_where: ConsumeFromWhere | str | None = None,
        consume_timestamp: str | int | None = None,
        message_model: MessageModel | str = "clustering",
        auto_commit: bool = True,
        auto_commit_interval_millis: int = 5_000,
        pull_batch_size: int = 10,
        pull_threshold_for_all: int = 10_000,
        pull_threshold_for_queue: int = 1_000,
        pull_threshold_size_for_queue: int = 100,
        consume_max_span: int = 2_000,
        poll_timeout_millis: int = 5_000,
        broker_suspend_max_time_millis: int = BLOCK_HOLD_MS,
        consumer_timeout_millis_when_suspend: int = 30_000,
        topic_metadata_check_interval_millis: int = 30_000,
        allocate_strategy: AllocateStrategy | None = None,
        offset_root: Path | str | None = None,
        profile: Profile | ClientProfile | str = "v49",
        serialize_type: SerializeType | str | None = None,
        time_scale: float | None = None,
        seed: int | None = None,
        runtime: Runtime | None = None,
        instance_name: str = DEFAULT_INSTANCE_NAME,
        client_ip: str = "127.0.0.1",
        unit_name: str = "",
        client_callback_executor_threads: int = DEFAULT_CALLBACK_THREADS,
        mq_client_api_timeout: int = DEFAULT_API_TIMEOUT_MS,
    ) -> None:
        config = make_config(
            namesrv_addr,
            profile=profile,
            serialize_type=serialize_type,
            instance_name=instance_name,
            client_ip=client_ip,
            unit_name=unit_name,
            client_callback_executor_threads=client_callback_executor_threads,
            mq_client_api_timeout=mq_client_api_timeout,
        )
        super().__init__(group, config, lease_runtime(runtime, time_scale, seed))
        self.options = LitePullOptions(
            consume_from_where=choose_start(consume_from, consume_from_where),
            consume_timestamp=consume_timestamp,
            message_model=parse_choice(MessageModel, message_model, "message_model"),
            auto_commit=auto_commit,
            auto_commit_interval_millis=auto_commit_interval_millis,
            pull_batch_size=pull_batch_size,
            pull_threshold_for_all=pull_threshold_for_all,
            pull_threshold_for_queue=pull_threshold_for_queue,
            pull_threshold_size_for_queue=pull_threshold_size_for_queue,
            consume_max_span=consume_max_span,
            poll_timeout_millis=poll_timeout_millis,
            broker_suspend_max_time_millis=broker_suspend_max_time_millis,
            consumer_timeout_millis_when_suspend=consumer_timeout_millis_when_suspend,
            topic_metadata_check_interval_millis=topic_metadata_check_interval_millis,
            allocate_strategy=allocate_strategy or AllocateAveragely(),
            offset_root=parse_offset_root(offset_root),
        )
        self.options.check()
        self.requests = ConsumeRequests(self.runtime)
        self.subscription_type = SubscriptionType.NONE
        self._assigned = LiteAssignment(self, self.requests)
        self._owned: dict[MessageQueue, ProcessQueue] = {}
        self._wanted: list[MessageQueue] = []
        self._watch = QueueListeners(self.fetch_message_queues)
        self._next_auto_commit = 0.0

    # Subscription and assignment.

    def subscribe(self, topic: str, expression: str | MessageSelector = "*") -> None:
        """Consume this consumer's share of a topic; a further call replaces the expression.

        Args:
            expression: ``*``, tags separated by ``||``, or a selector. ``start()`` fails if a broker of the
                topic refuses the selector's condition.

        Raises:
            ClientError: an invalid topic name or expression, or ``assign`` was called before.
        """
        subscription = make_subscription(topic, expression, self.next_version(topic))
        self._set_type(SubscriptionType.SUBSCRIBE)
        self.subscriptions[topic] = subscription
        if self.is_running:
            self.instance.spawn(self._announce())

    def unsubscribe(self, topic: str) -> None:
        """Stop pulling a topic; discard its messages that wait for ``poll``, and commit nothing."""
        self.subscriptions.pop(topic, None)
        for queue in [queue for queue in self._owned if queue.topic == topic]:
            self.rebalancer.drop(queue, self._owned.pop(queue))

    def assign(self, queues: Collection[MessageQueue]) -> None:
        """Consume exactly these queues, which replace those assigned before.

        Other consumers may read them, too.

        Raises:
            ClientError: no queues, or ``subscribe`` was called before.
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
        """The queues that are pulled now, sorted."""
        return sorted(assigned.queue for assigned in self._assigned)

    def register_topic_message_queue_change_listener(self, topic: str, listener: QueueChangeListener) -> None:
        """Call a function with a topic and all its queues when the queues have changed.

        The consumer checks 10 s after its start and then every ``topic_metadata_check_interval_millis``. If
        you register before the start, the listener is not called for the queues that exist at the start.

        Raises:
            ClientError: an invalid topic name.
        """
        require_topic(topic)
        self._watch.add(topic, listener)

    # Messages.

    async def poll(self, timeout: int | None = None) -> list[MessageExt]:
        """Return the next batch of one queue, at most ``pull_batch_size`` messages; [] after the timeout.

        With ``auto_commit``, call ``commit_sync`` first, once every ``auto_commit_interval_millis``.

        Args:
            timeout: ms, at least 0; None takes ``poll_timeout_millis``.

        Raises:
            ClientError: the consumer is not running, or the timeout is negative.
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

    # Lifecycle.

    def _set_type(self, kind: SubscriptionType) -> None:
        if self.subscription_type not in (SubscriptionType.NONE, kind):
            raise ClientError("Subscribe and assign are mutually exclusive.")
        self.subscription_type = kind

    def _owns_instance_name(self) -> bool:
        return self.options.message_model is MessageModel.CLUSTERING

    async def _start(self) -> None:
        options, instance = self.options, self.instance
        model = options.message_model
        await self._open_offset_store(model, options.offset_root, self._owned, self._commit_fenced)
        self.rebalancer = Rebalance(
            instance,
            self.group,
            model,
            options.allocate_strategy,
            self.offset_store,
            self._owned,
            start_offset=self.start_offset,
            dispatch=self._assigned.take_over,
            on_drop=self._assigned.dropped,
            on_change=_ignore_change,
            replaces_stuck=False,
        )
        instance.register_consumer(self)
        await instance.start()

    async def _started(self) -> None:
        for topic in list(self.subscriptions):
            await self.instance.routes.refresh(topic)
        await check_filters(self)
        if self.subscription_type is SubscriptionType.ASSIGN:
            self._assigned.replace(self._wanted, self._owned)
        await self._watch.begin(self.runtime, self.options.topic_metadata_check_interval_millis / 1000)

    async def _stop(self) -> None:
        await self._watch.stop()
        await self.persist_offsets()
        await self.instance.unregister_consumer(self.group)

    def _cancel_work(self) -> None:
        self._watch.cancel()
        self.rebalancer.drop_all()
        self.requests.wake()

    async def _announce(self) -> None:
        await self.instance.send_heartbeats()
        for topic in list(self.subscriptions):
            await self.instance.routes.refresh(topic)

    # Called by its queues.

    def begin_again(self, queue: MessageQueue, process_queue: ProcessQueue, offset: int, epoch: int) -> None:
        """See ``EpochConsumer``. A paused queue stays paused; a seek not yet used by a pull is discarded."""
        before = self._assigned.find(queue)
        super().begin_again(queue, process_queue, offset, epoch)
        after = self._assigned.find(queue)
        if before is not None and after is not None and after is not before:
            after.is_paused = before.is_paused
            after.consume_offset = offset

    def subscription_of(self, topic: str) -> SubscriptionData:
        """Return the subscription of a topic; that of queues set with ``assign`` is ``*``."""
        return self.subscriptions.get(topic) or make_subscription(topic, "*", 0)

    async def start_offset(self, queue: MessageQueue) -> int:
        """Return the group's offset of a queue, or a new group's first offset.

        Raises:
            RewindMQError: the broker did not return it.
        """
        moment = start_timestamp(self.options, self.made_at)
        return await start_offset(queue, self.options.consume_from_where, moment, self)

    async def stored_offset(self, queue: MessageQueue) -> int:
        """See ``start_offset.OffsetSource``; unlike push consumers, look in memory first."""
        return await self.offset_store.read(queue)

    # Called by the instance (``ConsumerInner``).

    def heartbeat_data(self) -> ConsumerData:
        """Return this consumer's part of a heartbeat."""
        return ConsumerData(
            self.group,
            ConsumeType.CONSUME_ACTIVELY,
            self.options.message_model,
            ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
            list(self.subscriptions.values()),
        )

    async def rebalance(self) -> bool:
        """Rebalance now; return True if the consumer owns all its queues."""
        if self.subscription_type is not SubscriptionType.SUBSCRIBE:
            return True
        return await self.rebalancer.run(self.subscriptions)


async def _ignore_change(topic: str) -> None:
    """Do nothing: queues are taken over and given up one by one."""
