"""ConsumeConcurrentlyService: calls the listener with several batches at a time (docs/spec/client.md C.10).

Source: RocketMQ 4.9.4 ``ConsumeMessageConcurrentlyService``. In place of Java's thread pool, up to
``consume_thread_max`` worker tasks run while there is work. Listeners that are not async run on the
runtime's worker threads, so that they cannot block the event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Sequence
from typing import Final, NamedTuple

from rewindmq.client.consume.process_queue import ProcessQueue
from rewindmq.client.core.application_error import must_reach_caller
from rewindmq.client.core.periodic import PeriodicTask
from rewindmq.client.push.consume_points import MESSAGES_PER_TURN, ConsumePoints, next_turn
from rewindmq.client.push.direct_consumption import CONCURRENT_RESULTS, consume_directly
from rewindmq.client.push.expired_messages import send_expired_back
from rewindmq.client.push.host import PushHost
from rewindmq.client.push.listener import (
    ConsumeConcurrentlyStatus,
    MessageListener,
    ReconsumeLater,
    is_async_listener,
    restore_topics,
)
from rewindmq.client.push.send_back import SendBack
from rewindmq.protocol.body.heartbeat import MessageModel
from rewindmq.protocol.body.running_info import ConsumeMessageDirectlyResult
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import retry_topic
from rewindmq.protocol.points import Point
from rewindmq.protocol.remoting.runtime import Cancellable
from rewindmq.protocol.remoting.tasks import cancel_tasks, end_tasks

RESUBMIT_SECONDS: Final = 5.0
_ALL_FAILED: Final = ReconsumeLater()

_log = logging.getLogger(__name__)


class ConsumeBatch(NamedTuple):
    """Messages of one queue for one call of the listener."""

    messages: Sequence[MessageExt]
    queue: MessageQueue
    process_queue: ProcessQueue


class ConsumeConcurrentlyService:
    """Calls the listener of one push consumer, with several batches at a time.

    Args:
        limit: maximum number of listener calls at the same time.
    """

    is_orderly: Final = False

    def __init__(self, consumer: PushHost, listener: MessageListener, limit: int) -> None:
        self._consumer = consumer
        self._listener = listener
        self._is_async = is_async_listener(listener)
        self.limit = limit
        self._batch_size = consumer.options.consume_message_batch_max_size
        self._retry_topic = retry_topic(consumer.group)
        self._pending: deque[ConsumeBatch] = deque()
        self._workers: set[asyncio.Task[None]] = set()
        # True from the start of a worker until it takes its first batch.
        self._is_worker_starting = False
        self._resubmissions: set[Cancellable] = set()
        # Batches in listeners by id: now, and at the last check for expired messages.
        self._running: dict[int, ConsumeBatch] = {}
        self._seen: dict[int, ConsumeBatch] = {}
        self._timeout = 60.0 * consumer.options.consume_timeout
        self._back = SendBack(consumer.instance, consumer.group, consumer.options.max_reconsume_times)
        self._skips_removed = consumer.profile.send_back_skips_removed
        self._cleaner: PeriodicTask | None = None
        self._is_stopped = False
        self._checks_dropped = consumer.profile.checks_dropped
        self._trace = consumer.trace
        self._probe = consumer.runtime.probe
        self._points = ConsumePoints(consumer)
        self._failpoint = consumer.runtime.failpoint

    def start(self) -> None:
        """Start the periodic check for messages older than ``consume_timeout``."""
        timeout = self._timeout
        self._cleaner = PeriodicTask(self._consumer.runtime, timeout, timeout, self._clean_expired)

    def submit(
        self, messages: Sequence[MessageExt], queue: MessageQueue, process_queue: ProcessQueue
    ) -> None:
        """Queue messages for the listener, in batches of at most ``consume_message_batch_max_size``."""
        # A tuple, because a listener that changed the list would change what counts as consumed.
        messages = tuple(messages)
        size = self._batch_size
        if len(messages) <= size:
            self._pending.append(ConsumeBatch(messages, queue, process_queue))
        else:
            self._pending.extend(
                ConsumeBatch(messages[start : start + size], queue, process_queue)
                for start in range(0, len(messages), size)
            )
        self._start_worker()

    async def stop(self) -> None:
        """Accept no more work and end the workers; running async listeners are cancelled.

        Like Java (``awaitTerminationMillisWhenShutdown`` 0), this does not wait for listeners that run in a
        thread; their results are discarded. If a listener itself calls this, its result is discarded too.
        """
        self.cancel()
        if self._cleaner is not None:
            await self._cleaner.stop()
        await end_tasks(self._workers)

    def cancel(self) -> None:
        """Like ``stop``, without waiting."""
        self._is_stopped = True
        self._pending.clear()
        for resubmission in self._resubmissions:
            resubmission.cancel()
        if self._cleaner is not None:
            self._cleaner.cancel()
        cancel_tasks(self._workers)

    def _start_worker(self) -> None:
        if self._is_worker_starting or self._is_stopped or len(self._workers) >= self.limit:
            return
        self._is_worker_starting = True
        worker = asyncio.get_running_loop().create_task(self._work())
        self._workers.add(worker)
        worker.add_done_callback(self._workers.discard)

    async def _work(self) -> None:
        self._is_worker_starting = False
        pending = self._pending
        monotonic = self._consumer.runtime.clock.monotonic
        since_turn = 0
        while pending:
            batch = pending.popleft()
            if pending:
                self._start_worker()
            # For the statistics, timing the first batch of each turn is enough.
            began = -1.0 if since_turn else monotonic()
            try:
                await self._consume(batch)
            except Exception:
                _log.exception("consumption of %s failed", batch.queue)
                self._resubmit_later(batch)
            if began >= 0:
                batch.process_queue.counts.call_took(monotonic() - began)
            since_turn += len(batch.messages)
            if since_turn >= MESSAGES_PER_TURN:
                since_turn = 0
                await next_turn()

    async def _consume(self, batch: ConsumeBatch) -> None:
        """Consume one batch; check ``dropped`` before and after the listener call.

        Specification: G1 and G2 of docs/spec/races.md E.2.
        """
        messages, queue, process_queue = batch
        if process_queue.dropped:
            return
        if queue.topic == self._retry_topic:
            restore_topics(messages)
        if self._probe is not None:
            self._points.emit(Point.LISTENER_CALLED, batch)
        trace = self._trace
        call = None if trace is None else trace.before(messages)
        # Read by `_clean_expired`. The id stays valid because the table keeps the batch alive.
        running, key = self._running, id(batch)
        running[key] = batch
        try:
            status = await self._call_listener(messages, queue)
        finally:
            del running[key]
        if trace is not None and call is not None:
            trace.after(call, success=status is ConsumeConcurrentlyStatus.CONSUME_SUCCESS)
        if self._probe is not None:
            shown = status if isinstance(status, str) else ConsumeConcurrentlyStatus.RECONSUME_LATER
            self._points.emit(Point.LISTENER_RETURNED, batch, status=str(shown))
        await self._process_result(batch, status)

    async def _process_result(
        self, batch: ConsumeBatch, status: ConsumeConcurrentlyStatus | ReconsumeLater
    ) -> None:
        """Store the progress, unless the queue was dropped or cleared meanwhile (G2 and G3)."""
        messages, queue, process_queue = batch
        if process_queue.dropped and self._checks_dropped:
            _log.info("processQueue is dropped without process consume result. messageQueue=%s", queue)
            self._points.emit(Point.RESULT_DISCARDED, batch)
            return
        if status is not ConsumeConcurrentlyStatus.CONSUME_SUCCESS:
            verdict = status if isinstance(status, ReconsumeLater) else _ALL_FAILED
            messages = await self._handle_failure(batch, verdict)
        offset = process_queue.remove_messages(messages)
        if offset < 0 or (process_queue.dropped and self._checks_dropped):
            self._points.emit(Point.RESULT_DISCARDED, batch)
            return
        if self._probe is not None:
            self._points.emit(Point.RESULT_ACCEPTED, batch, offset)
        if self._failpoint is not None:
            await self._failpoint(Point.RESULT_ACCEPTED, self._points.details(batch, offset))
        self._consumer.offset_store.update(queue, offset, increase_only=True, owner=process_queue)

    async def _call_listener(
        self, messages: Sequence[MessageExt], queue: MessageQueue
    ) -> ConsumeConcurrentlyStatus | ReconsumeLater:
        """Return the listener's result; an exception, None or any unknown value means RECONSUME_LATER."""
        try:
            answer = (
                self._listener(messages)
                if self._is_async
                else await self._consumer.runtime.workers.run(self._listener, messages)
            )
            result: object = await answer if isinstance(answer, Awaitable) else answer
        except BaseException as error:
            if must_reach_caller(error):
                raise
            self._consumer.errors.raised(queue, messages, error)
            return ConsumeConcurrentlyStatus.RECONSUME_LATER
        if result == ConsumeConcurrentlyStatus.CONSUME_SUCCESS:
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS
        if isinstance(result, ReconsumeLater):
            return result
        if result is not None and result != ConsumeConcurrentlyStatus.RECONSUME_LATER:
            self._consumer.errors.returned(queue, messages, result, ConsumeConcurrentlyStatus)
        return ConsumeConcurrentlyStatus.RECONSUME_LATER

    async def consume_message_directly(self, message: MessageExt) -> ConsumeMessageDirectlyResult:
        """Call the listener with one message that an administrator chose; see ``direct_consumption``."""
        messages = (message,)
        if message.topic == self._retry_topic:
            restore_topics(messages)

        async def call() -> object:
            workers = self._consumer.runtime.workers
            answer = (
                self._listener(messages) if self._is_async else await workers.run(self._listener, messages)
            )
            return await answer if isinstance(answer, Awaitable) else answer

        return await consume_directly(call, CONCURRENT_RESULTS, self._consumer.runtime.clock)

    # Failed messages.
    async def _handle_failure(self, batch: ConsumeBatch, verdict: ReconsumeLater) -> Sequence[MessageExt]:
        """Send failed messages back to the broker. If that fails, the client retries them itself after 5 s.

        Returns:
            The messages to remove from the ProcessQueue: consumed, sent back, or dropped (broadcasting).
        """
        messages, queue, process_queue = batch
        consumed = min(max(verdict.consumed, 0), len(messages))
        failed = messages[consumed:]
        if self._consumer.options.message_model is MessageModel.BROADCASTING:
            _log.warning("BROADCASTING, the message consume failed, drop it, %s", failed)
            process_queue.counts.have_failed(len(failed), len(failed))
            return messages
        done = list(messages[:consumed])
        again: list[MessageExt] = []
        for message in failed:
            if self._skips_removed and not process_queue.contains(message):
                _log.info("skip send-back of %s, which is not in its process queue", message.msg_id)
                done.append(message)
            elif await self._send_back(message, verdict.delay_level, queue):
                done.append(message)
            else:
                again.append(message.with_reconsume_times(message.reconsume_times + 1))
        if again:
            self._resubmit_later(ConsumeBatch(again, queue, process_queue))
        process_queue.counts.have_failed(len(failed), len(done) - consumed)
        return done

    async def _send_back(self, message: MessageExt, delay_level: int, queue: MessageQueue) -> bool:
        """Ask the broker to redeliver the message later; False if no broker accepts it."""
        try:
            await self._back.send(message, delay_level, queue)
        except RewindMQError as error:
            _log.warning(
                "cannot send back message %s of group %s, retrying it locally in %g s: %s",
                message.msg_id,
                self._consumer.group,
                RESUBMIT_SECONDS,
                error,
            )
            return False
        return True

    async def _clean_expired(self) -> None:
        """Send back messages whose listener call takes longer than ``consume_timeout``."""
        before, self._seen = self._seen, self._running.copy()
        # The check runs once per `consume_timeout`, so a batch seen twice has expired.
        expired = {
            (batch.process_queue, message.queue_offset)
            for key, batch in self._seen.items()
            if key in before
            for message in batch.messages
        }
        if expired:
            await send_expired_back(self._consumer.process_queues, expired, self._back.send)

    def _resubmit_later(self, batch: ConsumeBatch) -> None:
        if self._is_stopped:
            return

        def resubmit() -> None:
            self._resubmissions.discard(timer)
            self.submit(*batch)

        timer = self._consumer.runtime.timers.call_later(RESUBMIT_SECONDS, resubmit)
        self._resubmissions.add(timer)
