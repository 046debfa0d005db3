"""ConsumeOrderlyService: calls the listener with each queue's messages in order (docs/spec/client.md C.11).

Source: RocketMQ 4.9.4 ``ConsumeMessageOrderlyService``. In place of Java's thread, one task consumes a
queue. The task holds the queue's monitor: if the queue is assigned again, consumption waits until the
listener call of the former ProcessQueue has ended.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from rewindmq.client.consume.orderly_queue import OrderlyProcessQueue
from rewindmq.client.consume.process_queue import ProcessQueue
from rewindmq.client.consume.queue_locks import LOCK_INTERVAL, QueueLocks
from rewindmq.client.core.application_error import must_reach_caller
from rewindmq.client.core.periodic import PeriodicTask
from rewindmq.client.push.consume_points import MESSAGES_PER_TURN, ConsumePoints, next_turn
from rewindmq.client.push.direct_consumption import ORDERLY_RESULTS, consume_directly
from rewindmq.client.push.host import PushHost
from rewindmq.client.push.listener import (
    ConsumeOrderlyContext,
    ConsumeOrderlyStatus,
    MessageListenerOrderly,
    is_async_listener,
    restore_topics,
)
from rewindmq.client.push.retry_send import RetrySender
from rewindmq.protocol.body.heartbeat import MessageModel
from rewindmq.protocol.body.running_info import ConsumeMessageDirectlyResult
from rewindmq.protocol.errors import ClientError, RewindMQError
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import retry_topic
from rewindmq.protocol.points import Point
from rewindmq.protocol.remoting.runtime import Cancellable
from rewindmq.protocol.remoting.tasks import cancel_tasks, end_tasks

# After this time a queue's task yields to the tasks of other queues.
MAX_CONTINUOUS_SECONDS: Final = 60.0
# maxReconsumeTimes when the option is not set: Java's largest int.
UNLIMITED: Final = 2**31 - 1
_SUSPEND_BOUNDS_MS: Final = (10, 30_000)
_AGAIN_SOON_MS: Final = 10
_AGAIN_UNLOCKED_MS: Final = 3_000
_LOCK_LOST_DELAY: Final = 0.01
_NOT_LOCKED_DELAY: Final = 0.1

_log = logging.getLogger(__name__)


class _Batch(NamedTuple):
    messages: Sequence[MessageExt]
    queue: MessageQueue
    process_queue: OrderlyProcessQueue
    context: ConsumeOrderlyContext


_SUCCEEDED: Final = (ConsumeOrderlyStatus.SUCCESS, ConsumeOrderlyStatus.COMMIT)


class ConsumeOrderlyService:
    """Calls the listener of one push consumer with the messages of each queue in order.

    Args:
        limit: maximum number of queues whose task calls the listener, or waits for the queue's monitor, at
            the same time.
    """

    is_orderly: Final = True

    def __init__(
        self, consumer: PushHost, listener: MessageListenerOrderly, limit: int, locks: QueueLocks
    ) -> None:
        self._consumer = consumer
        self._listener = listener
        self._is_async = is_async_listener(listener)
        self.limit = limit
        self._locks = locks
        self._is_shared = consumer.options.message_model is MessageModel.CLUSTERING
        self._batch_size = consumer.options.consume_message_batch_max_size
        self._retry_topic = retry_topic(consumer.group)
        self._retries = RetrySender(consumer.instance, consumer.group)
        self._slots = asyncio.Semaphore(limit)
        # One for each queue that this consumer ever owned.
        self._monitors: dict[MessageQueue, asyncio.Lock] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._timers: set[Cancellable] = set()
        self._refresh: PeriodicTask | None = None
        self._is_stopped = False
        self._checks_dropped = consumer.profile.checks_dropped
        self._clock = consumer.runtime.clock
        self._trace = consumer.trace
        self._probe = consumer.runtime.probe
        self._points = ConsumePoints(consumer)
        self._failpoint = consumer.runtime.failpoint

    # Lifecycle.

    def start(self) -> None:
        """Start to refresh the locks: after 1 s, then every 20 s."""
        if not self._is_shared and self._consumer.profile.lock_profile.locks_broadcasting:
            _log.warning(
                "RocketMQ 4.x never pulls for an orderly listener of a broadcasting group, %s",
                self._consumer.group,
            )
        if self._is_shared:
            self._refresh = PeriodicTask(self._consumer.runtime, *LOCK_INTERVAL, self._locks.lock_all)

    def submit(
        self, messages: Sequence[MessageExt], queue: MessageQueue, process_queue: ProcessQueue
    ) -> None:
        """Start a task that consumes the queue's messages, unless one runs already."""
        assert isinstance(process_queue, OrderlyProcessQueue)
        if process_queue.begin_consuming():
            self._spawn(self._run(queue, process_queue))

    async def stop(self) -> None:
        """Accept no more work, end the tasks, and unlock all queues.

        A running async listener is cancelled. A listener in a thread continues; its result is discarded.
        """
        self.cancel()
        if self._refresh is not None:
            await self._refresh.stop()
        await end_tasks(self._tasks)
        await self._locks.unlock_all()

    def cancel(self) -> None:
        """Like ``stop``, without waiting and without unlocking."""
        self._is_stopped = True
        if self._refresh is not None:
            self._refresh.cancel()
        for timer in self._timers:
            timer.cancel()
        cancel_tasks(self._tasks)

    def _spawn(self, work: Any) -> None:
        if self._is_stopped:
            work.close()
            return
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Consumption of one queue.
    async def _run(self, queue: MessageQueue, process_queue: OrderlyProcessQueue) -> None:
        if process_queue.dropped:
            return
        async with self._slots, self._monitors.setdefault(queue, asyncio.Lock()):
            if self._holds(process_queue):
                try:
                    await self._consume_all(queue, process_queue)
                except Exception:
                    _log.exception("consumption of %s failed", queue)
                    process_queue.rollback()
                    pause = self._consumer.options.suspend_current_queue_time_millis
                    self._consume_later(queue, process_queue, pause)
            elif not process_queue.dropped:
                self._lock_and_consume_later(queue, process_queue, _NOT_LOCKED_DELAY)

    def _holds(self, process_queue: OrderlyProcessQueue) -> bool:
        """True if this consumer holds the queue's lock, or needs none."""
        return not self._is_shared or (
            process_queue.locked and not process_queue.is_lock_expired(self._clock.monotonic())
        )

    async def _consume_all(self, queue: MessageQueue, process_queue: OrderlyProcessQueue) -> None:
        """Consume batch after batch until no message is left or the queue must wait."""
        began = self._clock.monotonic()
        since_turn = 0
        while not process_queue.dropped:
            if not self._holds(process_queue):
                _log.warning("the message queue not locked, so consume later, %s", queue)
                self._lock_and_consume_later(queue, process_queue, _LOCK_LOST_DELAY)
                return
            if self._clock.monotonic() - began > MAX_CONTINUOUS_SECONDS:
                self._consume_later(queue, process_queue, _AGAIN_SOON_MS)
                return
            messages = process_queue.take_messages(self._batch_size)
            if not messages:
                return
            batch = _Batch(messages, queue, process_queue, ConsumeOrderlyContext(queue))
            if not await self._consume(batch):
                return
            since_turn += len(messages)
            if since_turn >= MESSAGES_PER_TURN:
                since_turn = 0
                await next_turn()

    async def _consume(self, batch: _Batch) -> bool:
        """Consume one batch; return False if the task must end, for example because the queue must pause."""
        process_queue = batch.process_queue
        if batch.queue.topic == self._retry_topic:
            restore_topics(batch.messages)
        async with process_queue.consume_lock:
            if process_queue.dropped:
                return False
            if self._probe is not None:
                self._points.emit(Point.LISTENER_CALLED, batch)
            began = self._clock.monotonic()
            trace = self._trace
            call = None if trace is None else trace.before(batch.messages)
            status = await self._call_listener(batch)
            if trace is not None and call is not None:
                trace.after(call, success=status in _SUCCEEDED)
            process_queue.counts.call_took(self._clock.monotonic() - began)
            if self._probe is not None:
                self._points.emit(Point.LISTENER_RETURNED, batch, status=str(status))
        return await self._process_result(batch, status)

    async def _call_listener(self, batch: _Batch) -> ConsumeOrderlyStatus:
        """Return the listener's result; an exception, None or any unknown value means SUSPEND."""
        try:
            result = await self._listen(tuple(batch.messages), batch.context)
        except BaseException as error:
            if must_reach_caller(error):
                raise
            self._consumer.errors.raised(batch.queue, batch.messages, error)
            return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT
        try:
            return ConsumeOrderlyStatus(result)  # type: ignore[arg-type]
        except ValueError:
            if result is not None:
                self._consumer.errors.returned(batch.queue, batch.messages, result, ConsumeOrderlyStatus)
            return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT

    async def _listen(self, messages: Sequence[MessageExt], context: ConsumeOrderlyContext) -> object:
        answer = (
            self._listener(messages, context)
            if self._is_async
            else await self._consumer.runtime.workers.run(self._listener, messages, context)
        )
        return await answer if isinstance(answer, Awaitable) else answer

    # Results.

    async def _process_result(self, batch: _Batch, status: ConsumeOrderlyStatus) -> bool:
        """Apply the listener's result; True if the next batch may follow.

        Unlike concurrent consumption, this applies the result even if the queue was dropped meanwhile:
        messages are put back or sent to the retry topic, and only the commit is omitted. If a reset cleared
        the queue, nothing is committed and the task ends (guard G7 of docs/spec/races.md E.2).
        """
        action = _ACTIONS[batch.context.auto_commit, status]
        goes_on, commits = await action(self, batch)
        if not commits:
            return goes_on
        queue, process_queue = batch.queue, batch.process_queue
        try:
            offset = process_queue.commit()
        except ClientError:
            _log.info("queue cleared during the listener call, so the result is discarded. %s", queue)
            self._points.emit(Point.RESULT_DISCARDED, batch)
            return False
        if process_queue.dropped and self._checks_dropped:
            self._points.emit(Point.RESULT_DISCARDED, batch)
            return goes_on
        if self._probe is not None:
            self._points.emit(Point.RESULT_ACCEPTED, batch, offset)
        if self._failpoint is not None:
            await self._failpoint(Point.RESULT_ACCEPTED, self._points.details(batch, offset))
        self._consumer.offset_store.update(queue, offset, increase_only=False, owner=process_queue)
        return goes_on

    async def _commit(self, batch: _Batch) -> tuple[bool, bool]:
        return True, True

    async def _continue(self, batch: _Batch) -> tuple[bool, bool]:
        return True, False

    async def _rollback(self, batch: _Batch) -> tuple[bool, bool]:
        batch.process_queue.rollback()
        self._consume_again(batch)
        return False, False

    async def _suspend(self, batch: _Batch) -> tuple[bool, bool]:
        again = await self._messages_to_redeliver(batch)
        if not again:
            return True, batch.context.auto_commit
        batch.process_queue.counts.have_failed(len(again), 0)
        batch.process_queue.make_message_to_consume_again(again)
        self._consume_again(batch)
        return False, False

    async def _messages_to_redeliver(self, batch: _Batch) -> list[MessageExt]:
        """Return the batch to redeliver; empty if the retry topic accepted every message.

        If one message must be redelivered, so are all others of the batch, even those in the retry topic.
        """
        limit = self._consumer.options.max_reconsume_times
        limit = UNLIMITED if limit is None else limit
        messages = list(batch.messages)
        is_again = False
        for position, message in enumerate(messages):
            if message.reconsume_times >= limit and await self._send_to_retry_topic(message, limit):
                continue
            is_again = True
            messages[position] = message.with_reconsume_times(message.reconsume_times + 1)
        return messages if is_again else []

    async def _send_to_retry_topic(self, message: MessageExt, limit: int) -> bool:
        times = message.reconsume_times + self._consumer.profile.lock_profile.reconsume_times_increment
        try:
            await self._retries.send(message, times, limit)
        except RewindMQError as error:
            _log.error("sendMessageBack exception, group: %s %s: %s", self._consumer.group, message, error)
            return False
        return True

    # Delayed consumption.

    def _consume_again(self, batch: _Batch) -> None:
        pause = batch.context.suspend_current_queue_time_millis
        if pause == -1:
            pause = self._consumer.options.suspend_current_queue_time_millis
        self._consume_later(batch.queue, batch.process_queue, pause)

    def _consume_later(self, queue: MessageQueue, process_queue: OrderlyProcessQueue, pause_ms: int) -> None:
        low, high = _SUSPEND_BOUNDS_MS
        seconds = min(max(pause_ms, low), high) / 1_000
        self._later(seconds, lambda: self._spawn(self._run(queue, process_queue)))

    def _lock_and_consume_later(
        self, queue: MessageQueue, process_queue: OrderlyProcessQueue, seconds: float
    ) -> None:
        self._later(seconds, lambda: self._spawn(self._lock_and_consume(queue, process_queue)))

    async def _lock_and_consume(self, queue: MessageQueue, process_queue: OrderlyProcessQueue) -> None:
        if process_queue.dropped:
            return
        is_locked = await self._locks.lock(queue)
        self._consume_later(queue, process_queue, _AGAIN_SOON_MS if is_locked else _AGAIN_UNLOCKED_MS)

    def _later(self, seconds: float, act: Callable[[], None]) -> None:
        if self._is_stopped:
            return

        def fire() -> None:
            self._timers.discard(timer)
            act()

        timer = self._consumer.runtime.timers.call_later(seconds, fire)
        self._timers.add(timer)

    # Requests of administrators.

    async def consume_message_directly(self, message: MessageExt) -> ConsumeMessageDirectlyResult:
        """Call the listener with one message that an administrator chose; see ``direct_consumption``."""
        messages = (message,)
        if message.topic == self._retry_topic:
            restore_topics(messages)
        context = ConsumeOrderlyContext(message.message_queue)
        result = await consume_directly(
            lambda: self._listen(messages, context), ORDERLY_RESULTS, self._clock, order=True
        )
        result.auto_commit = context.auto_commit
        return result


# The action for each auto-commit setting and listener result. It returns two flags: whether the next batch
# may follow at once, and whether the taken messages are committed.
_Action = Callable[[ConsumeOrderlyService, _Batch], Awaitable[tuple[bool, bool]]]
_STATUS: Final = ConsumeOrderlyStatus
_ACTIONS: Final = MappingProxyType[tuple[bool, ConsumeOrderlyStatus], _Action](
    {
        (True, _STATUS.SUCCESS): ConsumeOrderlyService._commit,
        (True, _STATUS.COMMIT): ConsumeOrderlyService._commit,
        (True, _STATUS.ROLLBACK): ConsumeOrderlyService._commit,
        (True, _STATUS.SUSPEND_CURRENT_QUEUE_A_MOMENT): ConsumeOrderlyService._suspend,
        (False, _STATUS.SUCCESS): ConsumeOrderlyService._continue,
        (False, _STATUS.COMMIT): ConsumeOrderlyService._commit,
        (False, _STATUS.ROLLBACK): ConsumeOrderlyService._rollback,
        (False, _STATUS.SUSPEND_CURRENT_QUEUE_A_MOMENT): ConsumeOrderlyService._suspend,
    }
)
