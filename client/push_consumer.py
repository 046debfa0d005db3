"""PushConsumer: messages come to a listener (docs/spec/client.md C.2 to C.12).

Source: RocketMQ 4.9.4 ``DefaultMQPushConsumer`` and ``DefaultMQPushConsumerImpl``, concurrent consumption.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack

from rewindmq.client.checks import make_subscription
from rewindmq.client.consume_orderly import ConsumeOrderlyService
from rewindmq.client.consume_service import ConsumeConcurrentlyService
from rewindmq.client.consume_statistics import ConsumeStatistics
from rewindmq.client.epoch_consumer import EpochConsumer
from rewindmq.client.filter_check import check_filters
from rewindmq.client.listener import MessageListener, MessageListenerOrderly
from rewindmq.client.listener_errors import ListenerErrors, require_listener
from rewindmq.client.local_offset_store import LocalFileOffsetStore
from rewindmq.client.msg_trace.hooks import ConsumeTrace
from rewindmq.client.offset_store import RemoteOffsetStore
from rewindmq.client.orderly_pull import OrderlyPullChain
from rewindmq.client.process_queue import ProcessQueue
from rewindmq.client.profile import ClientProfile
from rewindmq.client.pull_loop import PullChain
from rewindmq.client.push_options import PushOptionKwargs, PushOptions, parse_consume_timestamp
from rewindmq.client.queue_locks import QueueLocks
from rewindmq.client.rebalance import PullTarget, Rebalance
from rewindmq.client.reset import ResetState
from rewindmq.client.running_info import describe_push_consumer
from rewindmq.client.selector import MessageSelector
from rewindmq.client.start_offset import start_offset
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

_HALF_HOUR_MS = 30 * 60 * 1000


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
        self._chains: dict[ProcessQueue, PullChain] = {}
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
        if options.message_model is MessageModel.CLUSTERING:
            self.offset_store = RemoteOffsetStore(instance, self.group, owned, self._commit_fenced)
            retry = retry_topic(self.group)
            now = self.runtime.clock.now_ms()
            self.subscriptions[retry] = make_subscription(retry, "*", now)
        else:
            self.offset_store = LocalFileOffsetStore(instance, self.group, options.offset_root, owned)
        await self.offset_store.load()
        if options.enable_msg_trace:
            self.trace = ConsumeTrace(
                self.runtime, self.config, self.group, options.customized_trace_topic, instance.unique_ids
            )
        locks = self._make_consume_service(owned)
        self.rebalancer = Rebalance(
            instance,
            self.group,
            options.message_model,
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
        for chain in list(self._chains.values()):
            self.drop_queue(chain.queue, chain.process_queue)
            chain.stop()
        self._chains.clear()

    # What the instance asks (``GroupConsumer``).

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
        return await describe_push_consumer(self)

    async def consume_message_directly(self, message: MessageExt) -> ConsumeMessageDirectlyResult:
        return await self.consume_service.consume_message_directly(message)

    def resettable(self) -> PushConsumer:
        return self

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
        value = self.options.consume_timestamp
        moment = self.made_at - _HALF_HOUR_MS if value is None else parse_consume_timestamp(value)
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
        kind = OrderlyPullChain if self.consume_service.is_orderly else PullChain
        for target in targets:
            chain = kind(self, target)
            self._chains[target.process_queue] = chain
            chain.start(self.config.switches.dispatch_delay)

    def forget_chain(self, chain: PullChain) -> None:
        """A chain of pulls has ended."""
        self._chains.pop(chain.process_queue, None)

    def _queue_dropped(self, process_queue: ProcessQueue) -> None:
        """Let go of its pull, in profiles that do."""
        if self.switches.cancels_pulls:
            chain = self._chains.pop(process_queue, None)
            if chain is not None:
                chain.stop()

    async def _queues_changed(self, topic: str) -> None:
        """Tell the brokers by a newer subscription version."""
        subscription = self.subscriptions.get(topic)
        if subscription is not None:
            subscription.sub_version = self.runtime.clock.now_ms()
        await self.instance.send_heartbeats()

    async def _announce(self, topic: str) -> None:
        await self.instance.routes.refresh(topic)
        await self.instance.send_heartbeats()
