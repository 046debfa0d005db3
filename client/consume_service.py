"""Handing pulled messages to the listener, many batches at a time (``behaviour.md`` C.10).

Source: RocketMQ 4.9.4 ``ConsumeMessageConcurrentlyService``. Where Java has a thread pool, this has up to
``consume_thread_max`` worker tasks that live while there is work; plain listeners run on the runtime's
worker threads, so that none of them can hold up the event loop.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import types
from collections import deque
from collections.abc import Awaitable, Generator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rewindmq.client.direct_consumption import CONCURRENT_RESULTS, consume_directly
from rewindmq.client.listener import ConsumeConcurrentlyStatus, MessageListener
from rewindmq.client.process_queue import ProcessQueue
from rewindmq.protocol.body.heartbeat import MessageModel
from rewindmq.protocol.body.running_info import ConsumeMessageDirectlyResult
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import ResponseError, RewindMQError
from rewindmq.protocol.header.message import ConsumerSendMsgBackRequestHeader
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import retry_topic
from rewindmq.protocol.points import Point
from rewindmq.protocol.properties import RETRY_TOPIC
from rewindmq.protocol.remoting.runtime import Cancellable

if TYPE_CHECKING:
    from rewindmq.client.push_consumer import PushConsumer

RESUBMIT_SECONDS: Final = 5.0
DEFAULT_MAX_RECONSUME_TIMES: Final = 16
# Messages a worker consumes before it lets others have a turn of the event loop.
_MESSAGES_PER_TURN: Final = 256

_log = logging.getLogger(__name__)


class _Batch(NamedTuple):
    messages: Sequence[MessageExt]
    queue: MessageQueue
    process_queue: ProcessQueue


@types.coroutine
def _next_turn() -> Generator[None, None, None]:
    """Let the event loop do everything else that is ready."""
    yield


class ConsumeConcurrentlyService:
    """The concurrent consumption of one push consumer.

    Args:
        limit: batches in listeners at the same time.
    """

    is_orderly: Final = False

    def __init__(self, consumer: PushConsumer, listener: MessageListener, limit: int) -> None:
        self._consumer = consumer
        self._listener = listener
        self._is_async = inspect.iscoroutinefunction(listener) or inspect.iscoroutinefunction(
            getattr(listener, "__call__", None)  # noqa: B004 - the method itself is wanted
        )
        self.limit = limit
        self._batch_size = consumer.options.consume_message_batch_max_size
        self._retry_topic = retry_topic(consumer.group)
        self._pending: deque[_Batch] = deque()
        self._workers: set[asyncio.Task[None]] = set()
        # A worker that was started and has not taken a batch yet.
        self._one_is_starting = False
        self._resubmissions: set[Cancellable] = set()
        self._is_stopped = False
        self._checks_dropped = consumer.config.switches.checks_dropped
        self._probe = consumer.runtime.probe
        self._stall = consumer.runtime.stall

    def submit(
        self, messages: Sequence[MessageExt], queue: MessageQueue, process_queue: ProcessQueue
    ) -> None:
        """Queue messages for the listener, in batches of at most ``consume_message_batch_max_size``."""
        # What a listener does to the sequence it is given must not change what counts as consumed.
        messages = tuple(messages)
        size = self._batch_size
        if len(messages) <= size:
            self._pending.append(_Batch(messages, queue, process_queue))
        else:
            self._pending.extend(
                _Batch(messages[start : start + size], queue, process_queue)
                for start in range(0, len(messages), size)
            )
        self._start_worker()

    async def stop(self) -> None:
        """Take no more work and end the workers; an async listener that runs is cancelled.

        Java does not wait for its listeners either (``awaitTerminationMillisWhenShutdown`` 0); a plain one
        goes on in its thread, and its result is discarded. So is that of a listener that calls this itself.
        """
        self._is_stopped = True
        self._pending.clear()
        for resubmission in self._resubmissions:
            resubmission.cancel()
        workers = self._workers - {asyncio.current_task()}
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

    def _start_worker(self) -> None:
        if self._one_is_starting or self._is_stopped or len(self._workers) >= self.limit:
            return
        self._one_is_starting = True
        worker = asyncio.get_running_loop().create_task(self._work())
        self._workers.add(worker)
        worker.add_done_callback(self._workers.discard)

    async def _work(self) -> None:
        self._one_is_starting = False
        pending = self._pending
        monotonic = self._consumer.runtime.clock.monotonic
        since_turn = 0
        while pending:
            batch = pending.popleft()
            if pending:
                self._start_worker()
            # For statistics; timing the first batch of each turn is enough, and costs the others nothing.
            began = -1.0 if since_turn else monotonic()
            try:
                await self._consume(batch)
            except Exception:
                _log.exception("consumption of %s failed", batch.queue)
            if began >= 0:
                batch.process_queue.counts.call_took(monotonic() - began)
            since_turn += len(batch.messages)
            if since_turn >= _MESSAGES_PER_TURN:
                since_turn = 0
                await _next_turn()

    async def _consume(self, batch: _Batch) -> None:
        """One batch; ``dropped`` is looked at before and after the listener (G1 and G2 of E.2)."""
        messages, queue, process_queue = batch
        if process_queue.dropped:
            return
        if queue.topic == self._retry_topic:
            _restore_topics(messages)
        if self._probe is not None:
            self._emit(Point.LISTENER_CALLED, batch)
        status = await self._call_listener(messages, queue)
        if self._probe is not None:
            self._emit(Point.LISTENER_RETURNED, batch, status=str(status))
        await self._process_result(batch, status)

    async def _process_result(self, batch: _Batch, status: ConsumeConcurrentlyStatus) -> None:
        """Progress, unless the queue was given up or emptied meanwhile (G2 and G3)."""
        messages, queue, process_queue = batch
        if process_queue.dropped and self._checks_dropped:
            _log.info("processQueue is dropped without process consume result. messageQueue=%s", queue)
            self._emit(Point.RESULT_DISCARDED, batch)
            return
        if status is not ConsumeConcurrentlyStatus.CONSUME_SUCCESS:
            messages = await self._handle_failure(batch)
            process_queue.counts.have_failed(len(batch.messages), len(messages))
        offset = process_queue.remove_messages(messages)
        if offset < 0 or (process_queue.dropped and self._checks_dropped):
            self._emit(Point.RESULT_DISCARDED, batch)
            return
        if self._probe is not None:
            self._emit(Point.RESULT_ACCEPTED, batch, offset)
        if self._stall is not None:
            await self._stall(Point.RESULT_ACCEPTED, self._details(batch, offset))
        self._consumer.offset_store.update(queue, offset, increase_only=True, owner=process_queue)

    async def _call_listener(
        self, messages: Sequence[MessageExt], queue: MessageQueue
    ) -> ConsumeConcurrentlyStatus:
        """The listener's verdict; an exception, None or anything unknown means RECONSUME_LATER."""
        try:
            answer = (
                self._listener(messages)
                if self._is_async
                else await self._consumer.runtime.workers.run(self._listener, messages)
            )
            result = await answer if isinstance(answer, Awaitable) else answer
        except (Exception, asyncio.CancelledError) as error:
            worker = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and worker is not None and worker.cancelling():
                # It is this consumer that stops; otherwise the listener cancelled something of its own.
                raise
            _log.warning("consumeMessage exception, group %s, %s", self._consumer.group, queue, exc_info=True)
            return ConsumeConcurrentlyStatus.RECONSUME_LATER
        if result == ConsumeConcurrentlyStatus.CONSUME_SUCCESS:
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS
        return ConsumeConcurrentlyStatus.RECONSUME_LATER

    async def consume_message_directly(self, message: MessageExt) -> ConsumeMessageDirectlyResult:
        """Hand the listener one message of an administrator's, see ``direct_consumption``."""
        messages = (message,)
        if message.topic == self._retry_topic:
            _restore_topics(messages)

        async def call() -> object:
            workers = self._consumer.runtime.workers
            answer = (
                self._listener(messages) if self._is_async else await workers.run(self._listener, messages)
            )
            return await answer if isinstance(answer, Awaitable) else answer

        return await consume_directly(call, CONCURRENT_RESULTS, self._consumer.runtime.clock)

    # What failed.

    async def _handle_failure(self, batch: _Batch) -> Sequence[MessageExt]:
        """Send failed messages back; those that could not be are tried again here after 5 s.

        Returns:
            The messages this client is done with. A broadcasting member just drops failed ones.
        """
        if self._consumer.options.message_model is MessageModel.BROADCASTING:
            _log.warning("BROADCASTING, the message consume failed, drop it, %s", batch.messages)
            return batch.messages
        done: list[MessageExt] = []
        again: list[MessageExt] = []
        for message in batch.messages:
            if await self._send_back(message, batch.queue):
                done.append(message)
            else:
                again.append(message.with_reconsume_times(message.reconsume_times + 1))
        if again and not self._is_stopped:
            self._resubmit_later(_Batch(again, batch.queue, batch.process_queue))
        return done

    async def _send_back(self, message: MessageExt, queue: MessageQueue) -> bool:
        """Have the broker deliver it again later, 36; False when it did not take it."""
        consumer = self._consumer
        limit = consumer.options.max_reconsume_times
        header = ConsumerSendMsgBackRequestHeader(
            offset=message.commit_log_offset,
            group=consumer.group,
            delay_level=0,
            origin_msg_id=message.msg_id,
            origin_topic=message.topic,
            max_reconsume_times=DEFAULT_MAX_RECONSUME_TIMES if limit is None else limit,
        )
        try:
            address = await consumer.instance.routes.subscribe_address(queue.topic, queue.broker_name)
            await consumer.instance.api.send_message_back(address, header)
        except RewindMQError as error:
            unsupported = (
                isinstance(error, ResponseError) and error.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
            )
            _log.log(
                logging.DEBUG if unsupported else logging.WARNING,
                "sendMessageBack exception, group %s, %s: %s",
                consumer.group,
                message.msg_id,
                error,
            )
            return False
        return True

    def _resubmit_later(self, batch: _Batch) -> None:
        def resubmit() -> None:
            self._resubmissions.discard(timer)
            self.submit(*batch)

        timer = self._consumer.runtime.timers.call_later(RESUBMIT_SECONDS, resubmit)
        self._resubmissions.add(timer)

    def _emit(self, point: Point, batch: _Batch, offset: int = -1, status: str = "") -> None:
        if self._probe is None:
            return
        details = self._details(batch, offset)
        if status:
            details["status"] = status
        self._probe(point, details)

    def _details(self, batch: _Batch, offset: int) -> dict[str, Any]:
        """What is told about a batch; its first offset stands where there is no progress to name."""
        offsets = [message.queue_offset for message in batch.messages]
        details = self._consumer.offset_store.details(
            batch.queue, offset if offset >= 0 else offsets[0], batch.process_queue
        )
        details["offsets"] = offsets
        details["count"] = len(offsets)
        return details


def _restore_topics(messages: Sequence[MessageExt]) -> None:
    """A retried message shows the topic it was first sent to (``resetRetryAndNamespace``)."""
    for message in messages:
        message.topic = message.properties.get(RETRY_TOPIC, message.topic)
