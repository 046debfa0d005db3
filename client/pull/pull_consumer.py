"""PullConsumer: the application asks for messages and keeps the offsets (docs/spec/client.md C.13).

Source: RocketMQ 4.9.4 ``DefaultMQPullConsumer`` and ``DefaultMQPullConsumerImpl``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from rewindmq.client.consume.allocate import AllocateAveragely, AllocateStrategy
from rewindmq.client.consume.local_offset_store import parse_offset_root
from rewindmq.client.consume.manual_pull import BLOCK_HOLD_MS, BLOCK_TIMEOUT, pull_header, pull_once
from rewindmq.client.consume.process_queue import ProcessQueue
from rewindmq.client.consume.pull_result import PullResult
from rewindmq.client.consume.queue_reader import QueueReader
from rewindmq.client.consume.rebalance import PullTarget, Rebalance
from rewindmq.client.consume.selector import MessageSelector, make_subscription
from rewindmq.client.core.client_config import (
    DEFAULT_API_TIMEOUT_MS,
    DEFAULT_CALLBACK_THREADS,
    DEFAULT_INSTANCE_NAME,
    make_config,
)
from rewindmq.client.core.profile import ClientProfile
from rewindmq.client.pull import replay
from rewindmq.protocol.body.heartbeat import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    MessageModel,
)
from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.options import parse_choice, refuse_unknown_options
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.runtime import Runtime
from rewindmq.protocol.remoting.runtime_lease import lease_runtime

PULL_TIMEOUT: Final = 10.0


class PullConsumer(QueueReader):
    """Pulls messages when the application asks; the application keeps the offsets.

    A classic reset (RESET_CONSUMER_CLIENT_OFFSET, 220) has no effect on this consumer.

    Args:
        group: the consumer group.
        namesrv_addr: ``host:port`` of the name servers, separated by ``;``; None (default) takes the
            environment's ``NAMESRV_ADDR``.
        message_model: where ``update_consume_offset`` keeps offsets: "clustering" (default) at the broker,
            "broadcasting" in a local file.
        allocate_strategy: divides the queues of registered topics among the consumers; None (default):
            averagely.
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
        ClientError: an invalid group name, or a missing or invalid name server address.
    """

    @refuse_unknown_options
    def __init__(
        self,
        group: str,
        namesrv_addr: str | None = None,
        *,
        message_model: MessageModel | str = "clustering",
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
        self._model = parse_choice(MessageModel, message_model, "message_model")
        self._strategy = allocate_strategy or AllocateAveragely()
        self._offset_root = parse_offset_root(offset_root)

    def register_topic(self, topic: str) -> None:
        """Divide this topic's queues among the group's consumers, and commit their offsets every 5 s.

        Raises:
            ClientError: an invalid topic name.
        """
        self.subscriptions[topic] = make_subscription(topic, "*", self.runtime.clock.now_ms())

    # Offsets.

    def update_consume_offset(self, queue: MessageQueue, offset: int) -> None:
        """Set the group's offset in memory.

        ``persist_consume_offset`` stores it. Every 5 s, a timer stores the offsets of the queues that this
        consumer owns (see ``register_topic``). In clustering mode it removes all other offsets from memory.
        """
        self._require_running()
        self.offset_store.update(queue, offset, increase_only=False)

    async def fetch_consume_offset(self, queue: MessageQueue, *, from_store: bool = False) -> int:
        """Return the group's offset, -1 if there is none; look in memory first unless ``from_store``."""
        self._require_running()
        if from_store:
            return await self.offset_store.read_store(queue)
        return await self.offset_store.read(queue)

    async def persist_consume_offset(self, queue: MessageQueue) -> None:
        """Store one queue's offset now."""
        self._require_running()
        await self.offset_store.persist(queue)

    # Messages.

    async def pull(
        self,
        queue: MessageQueue,
        expression: str | MessageSelector,
        offset: int,
        max_nums: int,
        timeout: float = PULL_TIMEOUT,
    ) -> PullResult:
        """Pull once; at the end of the queue, the result is NO_NEW_MSG at once.

        Args:
            expression: ``*``, tags separated by ``||``, or a selector.
            offset: of the first message wanted, at least 0.
            max_nums: at least 1; brokers return at most 32 messages or 256 KiB.
            timeout: seconds.

        Raises:
            ClientError: an argument out of range, or an unknown broker.
            ResponseError: the broker refused.
            RemotingError: no answer.
        """
        return await self._pull(queue, expression, offset, max_nums, 0, timeout)

    async def pull_block_if_not_found(
        self, queue: MessageQueue, expression: str | MessageSelector, offset: int, max_nums: int
    ) -> PullResult:
        """Pull once; at the end of the queue, the broker waits 20 to 25 s for a message.

        Arguments and errors are those of ``pull``.
        """
        return await self._pull(queue, expression, offset, max_nums, BLOCK_HOLD_MS, BLOCK_TIMEOUT)

    def replay(
        self, topic: str, begin_ms: int, end_ms: int, expression: str | MessageSelector = "*"
    ) -> AsyncIterator[MessageExt]:
        """Iterate over messages stored in ``[begin_ms, end_ms]``, queue after queue (docs/manual-pull.md)."""
        return replay.replay(self, topic, begin_ms, end_ms, expression)

    async def _pull(
        self,
        queue: MessageQueue,
        expression: str | MessageSelector,
        offset: int,
        max_nums: int,
        hold_ms: int,
        timeout: float,
    ) -> PullResult:
        self._require_running()
        if offset < 0:
            raise ClientError("offset < 0")
        if max_nums <= 0:
            raise ClientError("maxNums <= 0")
        subscription = make_subscription(queue.topic, expression, 0)
        header = pull_header(
            self.group,
            queue,
            offset,
            max_nums,
            hold_ms=hold_ms,
            subscription=subscription,
            epoch=self.offset_store.epoch(queue),
        )
        return await pull_once(self.instance, self.offset_store, queue, header, subscription, timeout)

    # Lifecycle.

    def _owns_instance_name(self) -> bool:
        return self._model is MessageModel.CLUSTERING

    async def _start(self) -> None:
        instance = self.instance
        owned: dict[MessageQueue, ProcessQueue] = {}
        await self._open_offset_store(self._model, self._offset_root, owned)
        self.rebalancer = Rebalance(
            instance,
            self.group,
            self._model,
            self._strategy,
            self.offset_store,
            owned,
            start_offset=_no_start_offset,
            dispatch=_ignore_targets,
            on_drop=_ignore_drop,
            on_change=self._queues_changed,
            replaces_stuck=False,
        )
        instance.register_consumer(self)
        await instance.start()

    async def _stop(self) -> None:
        await self.persist_offsets()
        await self.instance.unregister_consumer(self.group)

    def _cancel_work(self) -> None:
        self.rebalancer.drop_all()

    # Called by the instance (``ConsumerInner``).

    def heartbeat_data(self) -> ConsumerData:
        """Return this consumer's part of a heartbeat."""
        return ConsumerData(
            self.group,
            ConsumeType.CONSUME_ACTIVELY,
            self._model,
            ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
            list(self.subscriptions.values()),
        )

    async def rebalance(self) -> bool:
        """Rebalance now; return True if the consumer owns all its queues."""
        return await self.rebalancer.run(self.subscriptions)

    def queue_reset(self, queue: MessageQueue, offset: int, epoch: int) -> None:
        """Do nothing: the application sees the reset at its next pull."""

    async def _queues_changed(self, topic: str) -> None:
        """Do nothing: the application asks for its queues."""


async def _no_start_offset(queue: MessageQueue) -> int:
    return 0


def _ignore_targets(targets: list[PullTarget]) -> None:
    """Do nothing: the application pulls, not the client."""


def _ignore_drop(process_queue: ProcessQueue) -> None:
    """Do nothing: the client has no pulls to stop."""
