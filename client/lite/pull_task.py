"""The pulls of one queue of a lite pull consumer (docs/spec/client.md C.14).

Source: RocketMQ 4.9.4 ``DefaultLitePullConsumerImpl.PullTaskImpl``, which pulls synchronously on a thread.
Here each queue has an asyncio task. It calls no listener and corrects no offset, so it shares little with
the push consumer's ``PullLoop``.
"""

from __future__ import annotations

import logging
from typing import Final

from rewindmq.client.consume.manual_pull import pull_header, pull_once
from rewindmq.client.consume.offset_store import NO_OFFSET
from rewindmq.client.consume.process_queue import FLOW_CONTROL_DELAY
from rewindmq.client.consume.pull_result import PullResult, PullStatus
from rewindmq.client.lite.assigned_queue import AssignedQueue, ConsumeRequest
from rewindmq.client.lite.host import LiteHost
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import ResponseError, RewindMQError
from rewindmq.protocol.points import Point

PAUSED_DELAY: Final = 1.0
# Java waits this long, not its configured delay, if the first offset cannot be determined.
NO_OFFSET_DELAY: Final = 3.0

_log = logging.getLogger(__name__)


class LitePullTask:
    """Pulls one assigned queue until it is dropped or the task is cancelled."""

    def __init__(self, consumer: LiteHost, assigned: AssignedQueue) -> None:
        self._consumer = consumer
        self._instance = consumer.instance
        self._assigned = assigned
        self._broker_id = 0
        self._task = self._instance.spawn(self._run())

    def cancel(self) -> None:
        """Stop; the answer of an outstanding pull is ignored."""
        self._task.cancel()

    async def _run(self) -> None:
        assigned = self._assigned
        while not assigned.process_queue.dropped:
            delay = self._seconds_to_wait() or await self._pull()
            if delay:
                await self._instance.runtime.timers.sleep(delay)

    def _seconds_to_wait(self) -> float:
        """Return the seconds until the queue may be looked at again, 0 if it may be pulled now."""
        consumer, options, process_queue = (
            self._consumer,
            self._consumer.options,
            self._assigned.process_queue,
        )
        process_queue.last_pull = self._instance.runtime.clock.monotonic()
        if self._assigned.is_paused:
            return PAUSED_DELAY
        if (
            len(consumer.requests) * options.pull_batch_size > options.pull_threshold_for_all
            or process_queue.cached_count > options.pull_threshold_for_queue
            or process_queue.cached_bytes >> 20 > options.pull_threshold_size_for_queue
            or process_queue.span > options.consume_max_span
        ):
            return FLOW_CONTROL_DELAY
        return 0.0

    async def _pull(self) -> float:
        """Pull once, and return how many seconds to wait after it."""
        try:
            offset = await self._next_offset()
        except RewindMQError as error:
            _log.error("Failed to get next pull offset, %s: %s", self._assigned.queue, error)
            return NO_OFFSET_DELAY
        try:
            await self._pull_at(offset)
        except RewindMQError as error:
            _log.error("An error occurred in pull message process, %s: %s", self._assigned.queue, error)
            profile = self._instance.profile
            if isinstance(error, ResponseError) and error.code == ResponseCode.FLOW_CONTROL:
                return profile.pull_flow_control_delay
            return profile.pull_exception_delay
        return 0.0

    async def _next_offset(self) -> int:
        """Return the offset of a seek, else the end of the last pull, else the group's offset.

        Raises:
            RewindMQError: the broker did not return the group's offset.
        """
        assigned = self._assigned
        if assigned.seek_offset != NO_OFFSET:
            assigned.pull_offset = assigned.consume_offset = assigned.seek_offset
            assigned.seek_offset = NO_OFFSET
        if assigned.pull_offset == NO_OFFSET:
            assigned.pull_offset = await self._consumer.start_offset(assigned.queue)
            assigned.process_queue.epoch = self._consumer.offset_store.epoch(assigned.queue)
        return assigned.pull_offset

    async def _pull_at(self, offset: int) -> None:
        consumer, options, assigned = self._consumer, self._consumer.options, self._assigned
        queue, process_queue, store = assigned.queue, assigned.process_queue, self._consumer.offset_store
        subscription = consumer.subscription_of(queue.topic)
        header = pull_header(
            consumer.group,
            queue,
            offset,
            options.pull_batch_size,
            hold_ms=options.broker_suspend_max_time_millis,
            subscription=subscription,
            epoch=process_queue.epoch,
            is_lite=True,
        )
        knows_epoch = store.has_epoch(queue)
        timeout = options.consumer_timeout_millis_when_suspend / 1000
        self._emit(Point.PULL_SENT, offset)
        result = await pull_once(self._instance, store, queue, header, subscription, timeout, self._broker_id)
        if process_queue.dropped:
            return
        self._broker_id = result.suggested_broker_id
        self._emit(Point.PULL_CALLBACK, result.next_begin_offset, status=str(result.status))
        if process_queue.epoch is not None and process_queue.epoch != result.epoch:
            if knows_epoch:
                consumer.begin_again(queue, process_queue, result.next_begin_offset, result.epoch)
                return
            process_queue.epoch = result.epoch
        self._accept(result)

    def _accept(self, result: PullResult) -> None:
        assigned = self._assigned
        if result.status is PullStatus.OFFSET_ILLEGAL:
            # Only the pull offset changes; the committed offset stays until the application polls (S6 of
            # docs/spec/races.md E.16).
            _log.warning("The pull request offset illegal, %s %s", assigned.queue, result.next_begin_offset)
        if result.messages:
            assigned.process_queue.put_messages(result.messages)
            self._consumer.requests.put(ConsumeRequest(assigned, result.messages))
        assigned.pull_offset = result.next_begin_offset

    def _emit(self, point: Point, offset: int, **more: str) -> None:
        probe = self._instance.runtime.probe
        if probe is not None:
            assigned = self._assigned
            details = self._consumer.offset_store.details(assigned.queue, offset, assigned.process_queue)
            probe(point, {**details, **more})
