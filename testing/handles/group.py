"""Group: consumers of a test's own, whose deliveries the kit records."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import TracebackType
from typing import Any, Final, Self

from rewindmq.client.push.listener_errors import ListenerError
from rewindmq.client.push.push_consumer import PushConsumer
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import ResponseError
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.testing.errors import KitError, NotSeenError
from rewindmq.testing.handles.context import Context
from rewindmq.testing.handles.group_reset import GroupReset
from rewindmq.testing.handles.progress import GroupProgress
from rewindmq.testing.handles.reset_target import ResetTarget
from rewindmq.testing.handles.resetting import Resetter
from rewindmq.testing.handles.watched_group import WatchedGroup
from rewindmq.testing.messages.deliveries import Deliveries, Delivery
from rewindmq.testing.messages.kit_message import KitMessage
from rewindmq.testing.messages.listeners import DEFAULT_RECONSUMES, Listener, RecordingListener

_SHOWN: Final = 5


class Group(WatchedGroup):
    """Push consumers of one group in this process: ``async with`` starts and stops them.

    At the end of the ``async with`` statement's start, each queue of the topic has a consumer.

    Args:
        options: returns the options of a consumer, which has the given number in the group, from 1.
        must_exist: the topic is not the kit's own, so ``start`` requires that it exists.

    Attributes:
        consumers: the consumers; more may be added with ``add_consumer``.
        deliveries: all calls of the listener, in the order in which they began.
    """

    def __init__(
        self,
        context: Context,
        name: str,
        topic: str,
        listener: Listener | None,
        *,
        is_orderly: bool,
        expression: str,
        options: Callable[[int], Mapping[str, Any]],
        max_reconsume_times: int | None,
        entrance: Callable[[], Awaitable[str]],
        must_exist: bool,
    ) -> None:
        super().__init__(context, name, topic)
        self._recorded = Deliveries(context.sent, context.waiter.notify)
        limit = max_reconsume_times
        if limit is None and not is_orderly:
            limit = DEFAULT_RECONSUMES
        self._listener = RecordingListener(
            listener,
            self._recorded,
            context.runtime.workers,
            is_orderly=is_orderly,
            max_reconsume_times=limit,
        )
        self._is_orderly = is_orderly
        self._expression = expression
        self._options = options
        # Returns the address that the next consumer uses as the name server's.
        self._entrance = entrance
        self._must_exist = must_exist
        self._progress = GroupProgress(name, topic, self._recorded)
        self.consumers: list[PushConsumer] = []

    @property
    def deliveries(self) -> Sequence[Delivery]:
        return tuple(self._recorded.all)

    @property
    def received(self) -> list[KitMessage]:
        """Each message that a listener got, once, in the order of the first delivery."""
        return list(dict.fromkeys(each.message for each in self._recorded.all))

    @property
    def errors(self) -> list[ListenerError]:
        """The newest failures of the listener, at most 32 of each consumer."""
        return [error for consumer in self.consumers for error in consumer.errors]

    def assert_no_errors(self) -> None:
        """Require that no call of the listener raised or returned a value of the wrong type.

        Raises:
            NotSeenError: the text has the first errors with their tracebacks.
        """
        errors = self.errors
        if errors:
            texts = [
                f"{each.queue} @{each.offset}: {each.error}\n{each.traceback}" for each in errors[:_SHOWN]
            ]
            raise NotSeenError(
                f"the listener of group {self.name} failed {len(errors)} times:\n" + "\n".join(texts)
            )

    # Consumers.

    async def start(self, consumers: int = 1) -> None:
        """Start consumers and wait until each queue has one of them; ``async with`` calls it.

        Raises:
            KitError: the group was started before, or there is no such topic.
            NotSeenError: a queue has no consumer within the default timeout.
            RewindMQError: a consumer did not start.
        """
        if self.consumers:
            raise KitError(
                f"group {self.name} was started before: make a new group, or use add_consumer() while it runs"
            )
        if self._must_exist:
            await self._require_topic()
        for _ in range(consumers):
            await self.add_consumer()
        await self.ready()

    async def _require_topic(self) -> None:
        """Fail if the topic does not exist: no queue would ever get a consumer."""
        try:
            await self._context.admin.topics.examine_topic_route_info(self.topic)
        except ResponseError as error:
            if error.code != ResponseCode.TOPIC_NOT_EXIST:
                raise
            raise KitError(
                f"group {self.name} subscribes to the topic {self.topic!r}, which does not exist: create it"
                " with `await rmq.topic(...)`, or let the application create it before the group starts"
            ) from None

    async def add_consumer(self) -> PushConsumer:
        """Start one more consumer, without waiting for the rebalance; see ``ready``."""
        options = self._options(len(self.consumers) + 1)
        consumer = PushConsumer(self.name, await self._entrance(), **options)
        consumer.subscribe(self.topic, self._expression)
        if self._is_orderly:
            consumer.register_orderly_listener(self._listener.orderly(lambda: consumer.client_id))
        else:
            consumer.register_message_listener(self._listener.concurrent(lambda: consumer.client_id))
        await consumer.start()
        self.consumers.append(consumer)
        return consumer

    @property
    def is_running(self) -> bool:
        """True while a consumer runs."""
        return bool(self._running)

    @property
    def _running(self) -> list[PushConsumer]:
        return [consumer for consumer in self.consumers if consumer.is_running]

    async def stop(self) -> None:
        """Stop all consumers: listeners end, and offsets are stored.

        If the stop of one consumer fails or is cancelled, the others are stopped before the error is raised.
        """
        async with contextlib.AsyncExitStack() as stops:
            for consumer in reversed(self.consumers):
                stops.push_async_callback(consumer.shutdown)

    def crash(self) -> None:
        """End all consumers as a killed process would: nothing is stored, no broker is told."""
        for consumer in self.consumers:
            consumer.abort()

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    # Waits. ``timeout`` is real seconds; None: 20 s and 60 s of the cluster's time.

    async def ready(self, timeout: float | None = None) -> None:
        """Wait until each queue of the topic has exactly one of the group's running consumers.

        Raises:
            NotSeenError: not within the timeout.
        """
        await self._waiter.until(self._unassigned, f"each queue of {self.topic} has a consumer", timeout)

    async def caught_up(self, timeout: float | None = None) -> None:
        """Wait until every message is consumed and its offset stored, retries included, and no listener runs.

        Raises:
            NotSeenError: not within the timeout; the text says what is left.
        """
        await super().caught_up(timeout)

    async def stored(self, timeout: float | None = None) -> dict[MessageQueue, int]:
        """Wait until the brokers store the offsets that the running consumers have in memory; return them.

        Raises:
            NotSeenError: not within the timeout.
        """
        latest: dict[MessageQueue, int] = {}

        async def condition() -> str | None:
            stored = await self.offsets()
            latest.clear()
            latest.update(stored)
            memory = self._progress.in_memory(self._running)
            late = {queue: offset for queue, offset in memory.items() if stored.get(queue, 0) < offset}
            if late:
                await self._progress.store(self._running)
            return f"not stored: {late}; stored: {stored}" if late else None

        await self._waiter.until(condition, f"the offsets of group {self.name} are stored", timeout)
        return latest

    async def received_count(self, count: int, timeout: float | None = None) -> list[KitMessage]:
        """Wait until the group has got ``count`` different messages or more; return ``received``.

        Raises:
            NotSeenError: fewer within the timeout.
        """

        async def condition() -> str | None:
            got = len(self.received)
            return None if got >= count else f"{got}"

        await self._waiter.until(condition, f"group {self.name} gets {count} messages", timeout)
        return self.received

    async def nothing_more(self, within: float = 10.0) -> None:
        """Require that no delivery begins for a while.

        Args:
            within: seconds of the cluster's time: with a time scale of 0.05, 10 takes half a second.

        Raises:
            NotSeenError: a delivery began; the text has the message.
        """
        number = len(self._recorded.all)

        async def condition() -> str | None:
            more = self._recorded.since(number)
            return f"{[each.message for each in more]}" if more else None

        await self._waiter.while_holding(condition, f"group {self.name} gets nothing more", within)

    async def reset(
        self, to: ResetTarget, *, mode: ResetMode | str | None = None, timeout: float | None = None
    ) -> GroupReset:
        """Reset the group; return as soon as every broker has accepted the reset.

        A broker refuses a reset in mode ``classic`` while no consumer is connected; the kit repeats it. A
        mark is exact: if a time does not lead to its offsets, because RocketMQ 4.9 takes the message nearest
        to a time, the kit resets queue by queue.

        Args:
            to: "begin", "end", a mark, a ``datetime``, ms since 1970, or an offset for each queue.
            mode: "classic", "server" or "fenced". None: "fenced" at a cluster of the kit, because consumers
                can lose a reset in another mode; else the broker's mode.

        Raises:
            KitError: mode "classic" cannot express the target, or the topic does not have one of its queues.
            NotSeenError: no broker accepted it within the timeout.
            RewindMQError: a broker refused for another reason than a missing consumer.
        """
        number = len(self._recorded.all)
        bounds = await self._context.queue_bounds(self.topic)
        known = None if self._expression == "*" else self._recorded.positions()
        accepted = await Resetter(self._context, self.name, self.topic).reset(to, mode, timeout)
        ends = {queue: end for queue, (_, end) in bounds.items()}
        expected = _expected(accepted.targets, ends, known)
        return GroupReset(self._context, self, self._recorded, number, accepted, expected)

    async def _behind(self) -> str | None:
        number = len(self._recorded.all)
        if busy := self._busy():
            if self._recorded.unsettled:
                await self._progress.find_retry_topic(self._running)
            return busy
        behind = await super()._behind()
        if behind and await self._progress.store(self._running):
            behind = await super()._behind()
        if behind:
            failed = self._recorded.unsettled
            return f"{behind}; failed: {failed[:_SHOWN]}" if failed else behind
        # A delivery may have begun while the brokers were asked.
        return self._busy() or (None if len(self._recorded.all) == number else "a delivery began")

    def _busy(self) -> str | None:
        if running := self._recorded.running:
            return f"{running} messages are in the listener"
        # An orderly consumer keeps a failed message in its queue: the lag counts it, and a reset may skip it.
        if not self._is_orderly and (unsettled := self._recorded.unsettled):
            return f"failed, to be redelivered: {unsettled[:_SHOWN]}"
        return None

    async def _dead_letters(self) -> list[KitMessage]:
        # Each message is retried before it becomes a dead letter.
        await self._progress.find_retry_topic(self._running)
        return await super()._dead_letters()

    async def _unassigned(self) -> str | None:
        route = await self._context.queue_bounds(self.topic)
        owners: dict[MessageQueue, int] = {}
        for consumer in self._running:
            for queue, process_queue in consumer.process_queues.items():
                if not process_queue.dropped:
                    owners[queue] = owners.get(queue, 0) + 1
        wrong = {queue: owners.get(queue, 0) for queue in route if owners.get(queue, 0) != 1}
        return f"consumers of each queue: {wrong}" if wrong else None


def _expected(
    targets: Mapping[MessageQueue, int],
    ends: Mapping[MessageQueue, int],
    known: AbstractSet[tuple[MessageQueue, int]] | None,
) -> set[tuple[MessageQueue, int]]:
    """Return queue and offset of each message that a reset redelivers.

    Args:
        known: messages that match the subscription, as far as the group has got them; None: all match.
    """
    expected = {
        (queue, offset)
        for queue, target in targets.items()
        for offset in range(target, ends.get(queue, target))
    }
    return expected if known is None else expected & known
