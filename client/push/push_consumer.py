"""PushConsumer: messages come to a listener (docs/spec/client.md C.2 to C.12).

Source: RocketMQ 4.9.4 ``DefaultMQPushConsumer`` and ``DefaultMQPushConsumerImpl``, concurrent consumption.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Unpack

from rewindmq.client.consume.epoch_consumer import EpochConsumer
from rewindmq.client.consume.filter_check import check_filters
from rewindmq.client.consume.options import start_timestamp
from rewindmq.client.consume.process_queue import ProcessQueue
from rewindmq.client.consume.queue_locks import QueueLocks
from rewindmq.client.consume.rebalance import PullTarget, Rebalance
from rewindmq.client.consume.selector import MessageSelector, make_subscription
from rewindmq.client.consume.start_offset import start_offset
from rewindmq.client.core.profile import ClientProfile
from rewindmq.client.produce.producer import make_trace_dispatcher
from rewindmq.client.push.consume_concurrently import ConsumeConcurrentlyService
from rewindmq.client.push.consume_orderly import ConsumeOrderlyService
from rewindmq.client.push.consume_statistics import ConsumeStatistics
from rewindmq.client.push.consume_trace import ConsumeTrace
from rewindmq.client.push.listener import MessageListener, MessageListenerOrderly
from rewindmq.client.push.listener_errors import ListenerErrors, require_listener
from rewindmq.client.push.options import PushOptionKwargs, PushOptions
from rewindmq.client.push.orderly_pull import OrderlyPullLoop
from rewindmq.client.push.pull_loop import PullLoop
from rewindmq.client.push.reset import ResetState, reset_consumer
from rewindmq.client.push.running_info import add_push_details
from rewindmq.protocol.body.heartbeat import (
    ConsumerData,
    ConsumeType,
    MessageModel,
)
from rewindmq.protocol.body.running_info import ConsumeMessageDirectlyResult, ConsumerRunningInfo
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import retry_topic
from rewindmq.protocol.remoting.runtime import Runtime


class PushConsumer(EpochConsumer):
    """A member of a consumer group whose listener is called with messages as they come.

    ::

        consumer = PushConsumer("G", "127.0.0.1:9876")
        consumer.subscribe("TopicTest", "TagA || TagB")
        consumer.register_message_listener(listener)
        async with consumer:
            ...

    Args:
        group: the consumer group.
        namesrv_addr: ``host:port[;host:port]``; None takes the environment's ``NAMESRV_ADDR``.
        runtime: None takes the system's.
        options: see ``PushOptions`` and ``ClientConfig``.

    Attributes:
        errors: the newest failures of the listener, and how many there were.

    Raises:
        ClientError: a bad group name, no or a bad name server address, an option out of range.
    """

    consume_service: ConsumeConcurrentlyService | ConsumeOrderlyService

    def __init__(
        self,
        group: str,
        namesrv_addr: str | None = None,
        *,
        runtime: Runtime | None = None,
        **options: Unpack[PushOptionKwargs],
    ) -> None:
        own = {name: options.pop(name) for name in PushOptions.__slots__ if name in options}  # type: ignore[misc]
        super().__init__(group, namesrv_addr, runtime, **options)  # type: ignore[misc]
        self.options = replace(PushOptions(), **own)
        self.options.check()
        self.is_suspended = False
        self.reset_state = ResetState.RUNNING
        self.errors = ListenerErrors(group, self.runtime.clock)
        self._listener: MessageListener | None = None
        self._orderly_listener: MessageListenerOrderly | None = None
        self._pulls: dict[ProcessQueue, PullLoop] = {}
        # There once started, where asked for.
        self.trace: ConsumeTrace | None = None
        self.statistics = ConsumeStatistics(self.runtime.clock.monotonic())

    # What an application calls before the start.

    def subscribe(self, topic: str, expression: str | MessageSelector = "*") -> None:
        """Consume a topic; calling it again replaces the expression.

        Args:
            expression: ``*``, or tags separated by ``||``, or a selector. The start fails if a broker of
                the topic refuses the selector's condition.

        Raises:
            ClientError: a bad topic name or expression.
        """
        self.subscriptions[topic] = make_subscription(topic, expression, self.runtime.clock.now_ms())
        if self.is_running:
            self.instance.spawn(self._announce(topic))

    def unsubscribe(self, topic: str) -> None:
        """Stop consuming a topic; its queues are given up at the next rebalance, without a commit."""
        self.subscriptions.pop(topic, None)

    def register_message_listener(self, listener: MessageListener) -> None:
        """Say what is called with messages, many at the same time; see ``listener.MessageListener``.

        Raises:
            ClientError: it cannot be called with ``(messages)``.
        """
        require_listener(listener, "messages")
        self._listener, self._orderly_listener = listener, None

    def register_orderly_listener(self, listener: MessageListenerOrderly) -> None:
        """Say what is called with messages, of each queue one batch after the other; see
        ``listener.MessageListenerOrderly``.

        Raises:
            ClientError: it cannot be called with ``(messages, context)``.
        """
        require_listener(listener, "messages", "context")
        self._listener, self._orderly_listener = None, listener

    # What an application may call while it runs.

    def suspend(self) -> None:
        """Stop pulling and rebalancing. Listeners, persisting, heartbeats and pulls in flight go on."""
        self.is_suspended = True

    async def resume(self) -> None:
        """Undo ``suspend``, and rebalance at once."""
        self.is_suspended = False
        await self.rebalance()

    async def reset_offset_by_timestamp(self, timestamp: int) -> None:
        """Rewind this consumer alone, topic after topic (docs/spec/reset.md D.13); 10 s each.

        Args:
            timestamp: ms.

        Raises:
            RewindMQError: a broker could not be asked for its offsets.
        """
        for topic in list(self.subscriptions):
            targets = {
                queue: await self.search_offset(queue, timestamp)
                for queue in self.rebalancer.topic_queues.get(topic, [])
            }
            if targets:
                await self.instance.reset_offsets(topic, self.group, targets)

    # Life.

    def _check(self) -> None:
        if self._listener is None and self._orderly_listener is None:
            raise ClientError("messageListener is null")

    def _owns_instance_name(self) -> bool:
        # A broadcasting member keeps its name, and so the directory of its offsets.
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
        locks = self._make_consume_service(owned)
        self.rebalancer = Rebalance(
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
        """What calls the listener; gives the locks that an orderly one needs."""
        limit = self.options.consume_thread_max or self.config.switches.consume_thread_max
        if self._listener is not None:
            self.consume_service = ConsumeConcurrentlyService(self, self._listener, limit)
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
        self.consume_service.start()
        self.instance.rebalance_service.wake()

    async def _stop(self) -> None:
        await self.consume_service.stop()
        if self.trace is not None:
            await self.trace.dispatcher.shutdown()
        await self.persist_offsets()
        await self.instance.unregister_consumer(self.group)

    def _let_go(self) -> None:
        self.consume_service.cancel()
        if self.trace is not None:
            self.trace.dispatcher.abort()
        self.rebalancer.drop_all()
        for pulls in list(self._pulls.values()):
            self.drop_queue(pulls.queue, pulls.process_queue)
            pulls.stop()
        self._pulls.clear()

    # What the instance asks (``ConsumerInner``).

    def heartbeat_data(self) -> ConsumerData:
        return ConsumerData(
            self.group,
            ConsumeType.CONSUME_PASSIVELY,
            self.options.message_model,
            self.options.consume_from_where,
            list(self.subscriptions.values()),
        )

    async def rebalance(self) -> bool:
        if self.is_suspended or not self.is_running:
            return False
        return await self.rebalancer.run(self.subscriptions)

    async def persist_offsets(self) -> None:
        self.gather_statistics()
        await super().persist_offsets()

    def gather_statistics(self) -> None:
        """Bring ``statistics`` up to date."""
        self.statistics.gather(self.runtime.clock.monotonic(), self.process_queues)

    async def running_info(self) -> ConsumerRunningInfo:
        info = await super().running_info()
        await add_push_details(info, self)
        return info

    async def consume_message_directly(self, message: MessageExt) -> ConsumeMessageDirectlyResult:
        return await self.consume_service.consume_message_directly(message)

    async def reset(self, topic: str, targets: Mapping[MessageQueue, int]) -> bool:
        """Carry out a reset that a broker asks for (220), see ``reset_consumer``; it takes 10 s."""
        await reset_consumer(self, topic, targets)
        return True

    # What a reset asks (``ResettableConsumer``).

    @property
    def switches(self) -> ClientProfile:
        return self.config.switches

    def update_offset(self, queue: MessageQueue, offset: int) -> None:
        owner = self.process_queues.get(queue)
        self.offset_store.update(queue, offset, increase_only=False, owner=owner)

    def drop_queue(self, queue: MessageQueue, process_queue: ProcessQueue) -> None:
        self.rebalancer.drop(queue, process_queue)

    async def give_up_queue(self, queue: MessageQueue) -> None:
        await self.rebalancer.remove_unnecessary(queue, self.process_queues.get(queue))

    # What the rebalance asks.

    async def start_offset(self, queue: MessageQueue) -> int:
        """Where consumption of a queue begins; see ``start_offset.start_offset``."""
        moment = start_timestamp(self.options, self.made_at)
        return await start_offset(queue, self.options.consume_from_where, moment, self)

    async def stored_offset(self, queue: MessageQueue) -> int:
        """See ``start_offset.OffsetSource``."""
        return await self.offset_store.read_store(queue)

    async def max_offset(self, queue: MessageQueue) -> int:
        """One past the queue's last message."""
        address = await self.instance.routes.subscribe_address(queue.topic, queue.broker_name)
        return await self.instance.api.max_offset(address, queue)

    async def search_offset(self, queue: MessageQueue, timestamp: int) -> int:
        """The queue's offset at a moment, ms."""
        address = await self.instance.routes.subscribe_address(queue.topic, queue.broker_name)
        return await self.instance.api.search_offset(address, queue, timestamp)

    def _dispatch(self, targets: list[PullTarget]) -> None:
        kind = OrderlyPullLoop if self.consume_service.is_orderly else PullLoop
        for target in targets:
            pulls = self._pulls[target.process_queue] = kind(self, target)
            pulls.start(self.config.switches.dispatch_delay)

    def forget_pulls(self, process_queue: ProcessQueue) -> None:
        """The queue's pulls have ended by themselves."""
        self._pulls.pop(process_queue, None)

    def _queue_dropped(self, process_queue: ProcessQueue) -> None:
        """Let go of its pull, in profiles that do."""
        if self.switches.cancels_pulls:
            pulls = self._pulls.pop(process_queue, None)
            if pulls is not None:
                pulls.stop()

    async def _queues_changed(self, topic: str) -> None:
        """Tell the brokers by a newer subscription version."""
        subscription = self.subscriptions.get(topic)
        if subscription is not None:
            subscription.sub_version = self.runtime.clock.now_ms()
        await self.instance.send_heartbeats()

    async def _announce(self, topic: str) -> None:
        await self.instance.routes.refresh(topic)
        await self.instance.send_heartbeats()
