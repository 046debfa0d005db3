"""PushConsumer: pulls messages and calls the application's listener with them.

Specification: docs/spec/client.md C.2 to C.12.

Source: RocketMQ 4.9.4 ``DefaultMQPushConsumer`` and ``DefaultMQPushConsumerImpl``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from rewindmq.client.consume.allocate import AllocateAveragely, AllocateStrategy
from rewindmq.client.consume.epoch_consumer import EpochConsumer
from rewindmq.client.consume.filter_check import check_filters
from rewindmq.client.consume.local_offset_store import parse_offset_root
from rewindmq.client.consume.options import choose_start, start_timestamp
from rewindmq.client.consume.process_queue import ProcessQueue
from rewindmq.client.consume.queue_locks import QueueLocks
from rewindmq.client.consume.rebalance import PullTarget, Rebalance
from rewindmq.client.consume.selector import MessageSelector, make_subscription
from rewindmq.client.consume.start_offset import start_offset
from rewindmq.client.core.client_config import (
    DEFAULT_API_TIMEOUT_MS,
    DEFAULT_CALLBACK_THREADS,
    DEFAULT_INSTANCE_NAME,
    make_config,
)
from rewindmq.client.core.profile import ClientProfile
from rewindmq.client.produce.producer import make_trace_dispatcher
from rewindmq.client.push.consume_concurrently import ConsumeConcurrentlyService
from rewindmq.client.push.consume_orderly import ConsumeOrderlyService
from rewindmq.client.push.consume_statistics import ConsumeStatistics
from rewindmq.client.push.consume_trace import ConsumeTrace
from rewindmq.client.push.listener import MessageListener, MessageListenerOrderly
from rewindmq.client.push.listener_errors import ListenerErrors, require_listener
from rewindmq.client.push.options import PushOptions
from rewindmq.client.push.orderly_pull import OrderlyPullLoop
from rewindmq.client.push.pop.parts import PopParts, make_pop_parts
from rewindmq.client.push.pull_loop import PullLoop
from rewindmq.client.push.reset import ResetState, reset_consumer
from rewindmq.client.push.running_info import add_push_details
from rewindmq.protocol.body.assignment import MessageRequestMode
from rewindmq.protocol.body.heartbeat import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    MessageModel,
)
from rewindmq.protocol.body.running_info import ConsumeMessageDirectlyResult, ConsumerRunningInfo
from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import retry_topic
from rewindmq.protocol.options import parse_choice, refuse_unknown_options
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.protocol.remoting.runtime_lease import lease_runtime


class PushConsumer(EpochConsumer):
    """A consumer that calls the application's listener with the messages it pulls.

    ::

        async def listener(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
            for message in messages:
                print(message.body)
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

        consumer = PushConsumer("G", "127.0.0.1:9876")
        consumer.subscribe("TopicTest", "TagA || TagB")
        consumer.register_message_listener(listener)
        async with consumer:
            ...

    Subscribe and register a listener before the start; ``async with`` calls ``start()`` and ``shutdown()``.
    An async listener runs on the event loop, a plain function on a worker thread. A message whose listener
    fails is redelivered later (docs/retry.md). A reset of the group moves the consumer (docs/reset.md).

    Applications call ``subscribe``, ``unsubscribe``, ``register_message_listener`` or
    ``register_orderly_listener``, ``start``, ``shutdown``, ``suspend``, ``resume``,
    ``reset_offset_by_timestamp`` and ``running_info``. The other methods are internal.

    Args:
        group: the consumer group.
        namesrv_addr: ``host:port`` of the name servers, separated by ``;``; None (default) takes the
            environment's ``NAMESRV_ADDR``.
        consume_from: where a group without a stored offset starts: "first", "last" (default) or "timestamp".
        consume_from_where: RocketMQ's name of ``consume_from``.
        consume_timestamp: where "timestamp" starts, ``yyyyMMddHHmmss`` in UTC, or ms since the epoch as an
            int; None (default): half an hour before the consumer was constructed.
        message_model: "clustering" (default): the consumers of the group share the messages;
            "broadcasting": each consumer gets every message.
        consume_thread_max: maximum number of listener calls at the same time, 1 to 1,000; None (default): 20,
            or 64 with profile v42. Listeners that are not async also share the runtime's 20 threads.
        consume_message_batch_max_size: messages per call of the listener, 1 to 1,024; default 1.
        pull_batch_size: messages per pull, 1 to 1,024; default 32.
        pull_interval: ms between a response with messages and the next pull of the queue, 0 to 65,535;
            default 0.
        pull_threshold_for_queue: flow control: no pull while more messages of the queue are cached, 1 to
            65,535; default 1,000.
        pull_threshold_size_for_queue: the same in whole MiB, 1 to 1,024; default 100.
        consume_concurrently_max_span: no pull while the first and last cached offsets are further apart, 1
            to 65,535; default 2,000.
        suspend_current_queue_time_millis: pause of a queue after an orderly listener suspends it, ms, 10 to
            30,000; the listener's context may override it; default 1,000.
        max_reconsume_times: retries of a message before the dead-letter topic; None (default): 16, or no
            limit with an orderly listener.
        consume_timeout: minutes after which a message whose listener still runs is sent back, 1 to 1,440;
            default 15. The consumer checks at the same interval.
        allocate_strategy: divides the queues among the consumers; None (default): averagely.
        offset_root: directory for the offsets of a broadcasting consumer; None (default):
            ``~/.rocketmq_offsets``.
        enable_msg_trace: record each listener call in the trace topic (docs/queries.md); default False.
        customized_trace_topic: the trace topic; None (default): ``RMQ_SYS_TRACE_TOPIC``.
        profile: the release to imitate: "v42", "v49" (default) or "v53"; or a variant of v49, "epoch" or
            "unguarded" (docs/consumer.md).
        serialize_type: serialization type of requests, "json", "rocketmq" or "msgpack"; None (default)
            negotiates.
        time_scale: factor on every scheduled wait, above 0; default 1. Use the cluster's (docs/time.md).
        request_mode: "pull" (default): the clients divide the queues and pull them. "pop": the brokers assign
            the queues and keep the group's progress, the consumer acknowledges each message
            (docs/pop_consumers.md).
        pop_invisible_time: ms in which no other consumer gets a popped message, 5,000 to 300,000; default
            60,000. The consumer renews it while a message waits or its listener runs.
        pop_batch_nums: messages per POP, 1 to 32; default 32.
        pop_threshold_for_queue: flow control: no POP while more messages of the queue are not acknowledged,
            1 to 65,535; default 96.
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

    Attributes:
        errors: the newest failures of the listener, and their count.

    Raises:
        ClientError: an invalid group name, a missing or invalid name server address, or an option out of
            range.
    """

    consume_service: ConsumeConcurrentlyService | ConsumeOrderlyService

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
        consume_thread_max: int | None = None,
        consume_message_batch_max_size: int = 1,
        pull_batch_size: int = 32,
        pull_interval: int = 0,
        pull_threshold_for_queue: int = 1000,
        pull_threshold_size_for_queue: int = 100,
        consume_concurrently_max_span: int = 2000,
        suspend_current_queue_time_millis: int = 1000,
        max_reconsume_times: int | None = None,
        consume_timeout: int = 15,
        allocate_strategy: AllocateStrategy | None = None,
        offset_root: Path | str | None = None,
        enable_msg_trace: bool = False,
        customized_trace_topic: str | None = None,
        request_mode: MessageRequestMode | str = "pull",
        pop_invisible_time: int = 60_000,
        pop_batch_nums: int = 32,
        pop_threshold_for_queue: int = 96,
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
        self.options = PushOptions(
            consume_from_where=choose_start(consume_from, consume_from_where),
            consume_timestamp=consume_timestamp,
            message_model=parse_choice(MessageModel, message_model, "message_model"),
            consume_thread_max=consume_thread_max,
            consume_message_batch_max_size=consume_message_batch_max_size,
            pull_batch_size=pull_batch_size,
            pull_interval=pull_interval,
            pull_threshold_for_queue=pull_threshold_for_queue,
            pull_threshold_size_for_queue=pull_threshold_size_for_queue,
            consume_concurrently_max_span=consume_concurrently_max_span,
            suspend_current_queue_time_millis=suspend_current_queue_time_millis,
            max_reconsume_times=max_reconsume_times,
            consume_timeout=consume_timeout,
            allocate_strategy=allocate_strategy or AllocateAveragely(),
            offset_root=parse_offset_root(offset_root),
            enable_msg_trace=enable_msg_trace,
            customized_trace_topic=customized_trace_topic,
            request_mode=parse_choice(MessageRequestMode, request_mode, "request_mode"),
            pop_invisible_time=pop_invisible_time,
            pop_batch_nums=pop_batch_nums,
            pop_threshold_for_queue=pop_threshold_for_queue,
        )
        self.options.check()
        self.is_suspended = False
        self.reset_state = ResetState.RUNNING
        self.errors = ListenerErrors(group, self.runtime.clock)
        self._listener: MessageListener | None = None
        self._orderly_listener: MessageListenerOrderly | None = None
        self._pulls: dict[ProcessQueue, PullLoop] = {}
        # Set by `start()` when the consumer pops.
        self._pop: PopParts | None = None
        # Set by `start()` when tracing is enabled.
        self.trace: ConsumeTrace | None = None
        self.statistics = ConsumeStatistics(self.runtime.clock.monotonic())

    # Set-up, before `start()`.

    def subscribe(self, topic: str, expression: str | MessageSelector = "*") -> None:
        """Subscribe to a topic; another call replaces the expression.

        Args:
            expression: ``*``, or tags separated by ``||``, or a selector. ``start()`` fails if a broker of
                the topic refuses the selector's condition.

        Raises:
            ClientError: an invalid topic name or expression.
        """
        self.subscriptions[topic] = make_subscription(topic, expression, self.next_version(topic))
        if self.is_running:
            self.instance.spawn(self._announce(topic))

    def unsubscribe(self, topic: str) -> None:
        """Stop consuming a topic. The next rebalance drops its queues without a commit."""
        self.subscriptions.pop(topic, None)

    def register_message_listener(self, listener: MessageListener) -> None:
        """Set the listener that gets batches of messages, several at the same time.

        It is called as ``listener(messages)``, with at most ``consume_message_batch_max_size`` messages of
        one queue. It returns a ``ConsumeConcurrentlyStatus`` or a ``ReconsumeLater``. None or an exception
        counts as RECONSUME_LATER.

        Raises:
            ClientError: the listener cannot be called with ``(messages)``.
        """
        require_listener(listener, "messages")
        self._listener, self._orderly_listener = listener, None

    def register_orderly_listener(self, listener: MessageListenerOrderly) -> None:
        """Set the listener that gets the batches of each queue one after the other.

        It is called as ``listener(messages, context)``, with a ``ConsumeOrderlyContext``, and returns a
        ``ConsumeOrderlyStatus``. None or an exception counts as SUSPEND_CURRENT_QUEUE_A_MOMENT.

        Raises:
            ClientError: the listener cannot be called with ``(messages, context)``.
        """
        require_listener(listener, "messages", "context")
        self._listener, self._orderly_listener = None, listener

    # Calls while the consumer runs.

    def suspend(self) -> None:
        """Stop pulling and rebalancing. Listeners, commits, heartbeats and pulls in flight continue."""
        self.is_suspended = True

    async def resume(self) -> None:
        """Undo ``suspend``, and rebalance at once."""
        self.is_suspended = False
        await self.rebalance()

    async def reset_offset_by_timestamp(self, timestamp: int) -> None:
        """Reset this consumer alone, one topic after the other, 10 s each (docs/spec/reset.md D.13).

        Args:
            timestamp: ms.

        Raises:
            RewindMQError: a broker did not return an offset.
        """
        for topic in list(self.subscriptions):
            targets = {
                queue: await self.search_offset(queue, timestamp)
                for queue in self.rebalancer.topic_queues.get(topic, [])
            }
            if targets:
                await self.instance.reset_offsets(topic, self.group, targets)

    # Lifecycle.

    def _check(self) -> None:
        if self._listener is None and self._orderly_listener is None:
            raise ClientError("messageListener is null")
        if self.options.pops and self._orderly_listener is not None:
            raise ClientError("a consumer with an orderly listener cannot pop: use request_mode='pull'")

    def _owns_instance_name(self) -> bool:
        # The offset directory of a broadcasting consumer is named after its instance name.
        return self.options.message_model is MessageModel.CLUSTERING

    async def _start(self) -> None:
        options, instance = self.options, self.instance
        owned: dict[MessageQueue, ProcessQueue] = {}
        model = options.message_model
        await self._open_offset_store(model, options.offset_root, owned, self._commit_fenced)
        if model is MessageModel.CLUSTERING:
            retry = retry_topic(self.group)
            self.subscriptions[retry] = make_subscription(retry, "*", self.runtime.clock.now_ms())
        if options.enable_msg_trace:
            dispatcher = make_trace_dispatcher(
                self.runtime, self.config, self.group, "CONSUME", options.customized_trace_topic
            )
            now_ms = self.runtime.clock.now_ms
            self.trace = ConsumeTrace(dispatcher, self.group, now_ms, instance.unique_ids)
        if options.pops:
            self._pop = make_pop_parts(self)
        locks = self._make_consume_service(owned)
        make_rebalance: Callable[..., Rebalance] = Rebalance if self._pop is None else self._pop.rebalance
        self.rebalancer = make_rebalance(
            instance,
            self.group,
            model,
            options.allocate_strategy,
            self.offset_store,
            owned,
            start_offset=self.start_offset,
            dispatch=self._dispatch,
            on_drop=self._queue_dropped,
            on_change=self._queues_changed,
            replaces_stuck=True,
            locks=locks,
        )
        instance.register_consumer(self)
        await instance.start()

    def _make_consume_service(self, owned: dict[MessageQueue, ProcessQueue]) -> QueueLocks | None:
        """Set ``consume_service``; return the queue locks if the listener is orderly."""
        limit = self.options.consume_thread_max or self.config.profile.consume_thread_max
        if self._listener is not None:
            make = ConsumeConcurrentlyService if self._pop is None else self._pop.consume_service
            self.consume_service = make(self, self._listener, limit)
            return None
        assert self._orderly_listener is not None
        locks = QueueLocks(self.instance, self.group, self.options.message_model, self.offset_store, owned)
        self.consume_service = ConsumeOrderlyService(self, self._orderly_listener, limit, locks)
        return locks

    async def _started(self) -> None:
        if self.trace is not None:
            await self.trace.dispatcher.start()
        for topic in list(self.subscriptions):
            await self.instance.routes.refresh(topic)
        await check_filters(self)
        await self.instance.send_heartbeats()
        if self._pop is not None:
            await self._pop.settle(self.rebalancer)
        self.consume_service.start()
        self.instance.rebalance_service.wake()

    async def _stop(self) -> None:
        await self.consume_service.stop()
        if self.trace is not None:
            await self.trace.dispatcher.shutdown()
        await self.persist_offsets()
        await self.instance.unregister_consumer(self.group)

    def _cancel_work(self) -> None:
        self.consume_service.cancel()
        if self.trace is not None:
            self.trace.dispatcher.abort()
        self.rebalancer.drop_all()
        if self._pop is not None:
            self._pop.queues.close()
        for pulls in list(self._pulls.values()):
            self.drop_queue(pulls.queue, pulls.process_queue)
            pulls.stop()
        self._pulls.clear()

    # Implementation of `ConsumerInner`.

    def heartbeat_data(self) -> ConsumerData:
        """Return this consumer's part of a heartbeat."""
        return ConsumerData(
            self.group,
            ConsumeType.CONSUME_PASSIVELY,
            self.options.message_model,
            self.options.consume_from_where,
            list(self.subscriptions.values()),
        )

    async def rebalance(self) -> bool:
        """Rebalance now; return True if the consumer owns all its queues."""
        if self.is_suspended or not self.is_running:
            return False
        return await self.rebalancer.run(self.subscriptions)

    async def persist_offsets(self) -> None:
        """Commit the offsets of the owned queues."""
        self.gather_statistics()
        await super().persist_offsets()

    def gather_statistics(self) -> None:
        """Update ``statistics`` from the counts of the queues."""
        popped = {} if self._pop is None else self._pop.queues.queues
        self.statistics.gather(self.runtime.clock.monotonic(), {**self.process_queues, **popped})

    async def running_info(self) -> ConsumerRunningInfo:
        """Return the consumer's settings, queues and rates.

        Raises:
            RewindMQError: the offset of a queue is not in memory, and the broker did not return it.
        """
        info = await super().running_info()
        await add_push_details(info, self)
        return info

    async def consume_message_directly(self, message: MessageExt) -> ConsumeMessageDirectlyResult:
        """Call the listener with one message for an administrator (CONSUME_MESSAGE_DIRECTLY, 309)."""
        return await self.consume_service.consume_message_directly(message)

    async def reset(self, topic: str, targets: Mapping[MessageQueue, int]) -> bool:
        """Handle RESET_CONSUMER_CLIENT_OFFSET (220); it takes 10 s, see ``reset_consumer``."""
        await reset_consumer(self, topic, targets)
        return True

    # Implementation of `ResettableConsumer`.

    @property
    def profile(self) -> ClientProfile:
        return self.config.profile

    def update_offset(self, queue: MessageQueue, offset: int) -> None:
        """Set the offset in memory, even to a lower value."""
        owner = self.process_queues.get(queue)
        self.offset_store.update(queue, offset, increase_only=False, owner=owner)

    def drop_queue(self, queue: MessageQueue, process_queue: ProcessQueue) -> None:
        """Stop the queue's pulls, and discard the results of running listeners."""
        self.rebalancer.drop(queue, process_queue)

    async def give_up_queue(self, queue: MessageQueue) -> None:
        """Commit the queue's offset and remove it from memory."""
        await self.rebalancer.remove_unnecessary(queue, self.process_queues.get(queue))

    # Callbacks of the rebalance.

    async def start_offset(self, queue: MessageQueue) -> int:
        """Return the offset of a new queue's first pull; see ``start_offset.start_offset``."""
        moment = start_timestamp(self.options, self.made_at)
        return await start_offset(queue, self.options.consume_from_where, moment, self)

    async def stored_offset(self, queue: MessageQueue) -> int:
        """See ``start_offset.OffsetSource``."""
        return await self.offset_store.read_store(queue)

    async def max_offset(self, queue: MessageQueue) -> int:
        """Return the offset after the queue's last message."""
        address = await self.instance.routes.subscribe_address(queue.topic, queue.broker_name)
        return await self.instance.api.max_offset(address, queue)

    async def search_offset(self, queue: MessageQueue, timestamp: int) -> int:
        """Return the queue's offset at a time in ms."""
        address = await self.instance.routes.subscribe_address(queue.topic, queue.broker_name)
        return await self.instance.api.search_offset(address, queue, timestamp)

    def _dispatch(self, targets: list[PullTarget]) -> None:
        kind = OrderlyPullLoop if self.consume_service.is_orderly else PullLoop
        for target in targets:
            pulls = self._pulls[target.process_queue] = kind(self, target)
            pulls.start(self.config.profile.dispatch_delay)

    def forget_pulls(self, process_queue: ProcessQueue) -> None:
        """Remove the pull loop of a queue after the loop has ended."""
        self._pulls.pop(process_queue, None)

    def _queue_dropped(self, process_queue: ProcessQueue) -> None:
        """Stop the queue's pull loop if the profile cancels pulls."""
        if self.profile.cancels_pulls:
            pulls = self._pulls.pop(process_queue, None)
            if pulls is not None:
                pulls.stop()

    async def _queues_changed(self, topic: str) -> None:
        """Send the brokers a newer subscription version."""
        subscription = self.subscriptions.get(topic)
        if subscription is not None:
            subscription.sub_version = self.next_version(topic)
        await self.instance.send_heartbeats()

    async def _announce(self, topic: str) -> None:
        await self.instance.routes.refresh(topic)
        await self.instance.send_heartbeats()
