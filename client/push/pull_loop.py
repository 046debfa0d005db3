"""PullLoop: pulls one queue of a push consumer, one request at a time (docs/spec/client.md C.7).

Callbacks drive the loop: there is no task per pull. Source: RocketMQ 4.9.4
``DefaultMQPushConsumerImpl#pullMessage``; the profile has the differences of 5.3.3.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from rewindmq.client.consume.process_queue import FLOW_CONTROL_DELAY
from rewindmq.client.consume.pull_result import PullResult, PullStatus, decode_pull_response
from rewindmq.client.consume.rebalance import PullTarget
from rewindmq.client.core.route import find_address
from rewindmq.client.push.host import PushHost
from rewindmq.protocol.body.heartbeat import MessageModel, SubscriptionData
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import ClientError, ResponseError, RewindMQError
from rewindmq.protocol.header.pull import PullMessageRequestHeader
from rewindmq.protocol.message.sysflag import PullSysFlag
from rewindmq.protocol.points import Point
from rewindmq.protocol.remoting.runtime import Cancellable

BROKER_HOLD_MS: Final = 15_000
PULL_TIMEOUT: Final = 30.0
SUSPENDED_DELAY: Final = 1.0

_SUSPEND: Final = int(PullSysFlag.SUSPEND)
_COMMIT: Final = int(PullSysFlag.COMMIT_OFFSET)

_log = logging.getLogger(__name__)


class PullLoop:
    """Pulls for one ProcessQueue until it is dropped."""

    __slots__ = (
        "_broker_id",
        "_commits",
        "_consumer",
        "_instance",
        "_is_stopped",
        "_max_span",
        "_next_offset",
        "_options",
        "_pull",
        "_subscription",
        "_timer",
        "process_queue",
        "queue",
    )

    def __init__(self, consumer: PushHost, target: PullTarget) -> None:
        self._consumer = consumer
        self._instance = consumer.instance
        self._options = consumer.options
        self._commits = consumer.options.message_model is MessageModel.CLUSTERING
        self.queue = target.queue
        self.process_queue = target.process_queue
        self._next_offset = target.offset
        self._broker_id = 0
        self._subscription: SubscriptionData | None = None
        self._timer: Cancellable | None = None
        self._pull: asyncio.Future[RemotingCommand] | None = None
        self._is_stopped = False
        self._max_span = consumer.options.consume_concurrently_max_span

    def start(self, delay: float) -> None:
        """Pull now, or ``delay`` seconds from now."""
        if delay > 0:
            self._later(delay)
        else:
            self.pull()

    def stop(self) -> None:
        """Cancel the timer and the request. A response that still arrives is ignored."""
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
        if self._pull is not None:
            self._pull.remove_done_callback(self._on_response)
            self._pull.cancel()

    def pull(self) -> None:
        """Send the next pull, or schedule it if the queue must wait."""
        self._timer = None
        process_queue = self.process_queue
        if process_queue.dropped:
            self._consumer.forget_pulls(self.process_queue)
            return
        process_queue.last_pull = self._instance.runtime.clock.monotonic()
        delay = self._seconds_to_wait()
        if delay:
            self._later(delay)
            return
        subscription = self._consumer.subscriptions.get(self.queue.topic)
        if subscription is None:
            self._later(self._instance.profile.pull_exception_delay)
            return
        self._subscription = subscription
        self._send(subscription)

    def _seconds_to_wait(self) -> float:
        """Return the seconds to wait before the next pull; 0: none."""
        consumer, process_queue, options = self._consumer, self.process_queue, self._options
        if not consumer.is_running:
            return self._instance.profile.pull_exception_delay
        if consumer.is_suspended:
            return SUSPENDED_DELAY
        if (
            process_queue.cached_count > options.pull_threshold_for_queue
            or process_queue.cached_bytes >> 20 > options.pull_threshold_size_for_queue
            or process_queue.span > self._max_span
        ):
            return FLOW_CONTROL_DELAY
        return 0.0

    def _later(self, delay: float) -> None:
        self._timer = self._instance.runtime.timers.call_later(delay, self.pull)

    def _send(self, subscription: SubscriptionData) -> None:
        instance, queue = self._instance, self.queue
        commit_offset = self._consumer.offset_store.read_memory(queue) if self._commits else 0
        address = find_address(instance.routes.brokers, queue.broker_name, self._broker_id)
        if address is None:
            instance.spawn(self._find_broker())
            return
        sys_flag = _SUSPEND
        # As in RocketMQ, a pull does not commit offset 0, and a pull from a slave does not commit.
        if commit_offset > 0 and address == instance.routes.master_address(queue.broker_name):
            sys_flag |= _COMMIT
        header = PullMessageRequestHeader(
            consumer_group=self._consumer.group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=self._next_offset,
            max_msg_nums=self._options.pull_batch_size,
            sys_flag=sys_flag,
            commit_offset=max(commit_offset, 0),
            suspend_timeout_millis=BROKER_HOLD_MS,
            sub_version=subscription.sub_version,
            expression_type=subscription.expression_type,
            epoch=self.process_queue.epoch,
        )
        self._emit(Point.PULL_SENT, self._next_offset)
        command = instance.api.command(RequestCode.PULL_MESSAGE, header)
        self._pull = instance.remoting.invoke(address, command, PULL_TIMEOUT)
        self._pull.add_done_callback(self._on_response)

    async def _find_broker(self) -> None:
        try:
            await self._instance.routes.subscribe_address(
                self.queue.topic, self.queue.broker_name, self._broker_id
            )
        except ClientError as error:
            _log.warning("pull of %s: %s", self.queue, error)
            self._later(self._instance.profile.pull_exception_delay)
        else:
            self.pull()

    def _on_response(self, future: asyncio.Future[RemotingCommand]) -> None:
        self._pull = None
        if future.cancelled():
            return
        callbacks = self._instance.callbacks
        if callbacks.is_exhausted:
            callbacks.run(lambda: self._handle_response(future))
        else:
            self._handle_response(future)

    def _handle_response(self, future: asyncio.Future[RemotingCommand]) -> None:
        if self._is_stopped:
            return
        assert self._subscription is not None
        try:
            result = decode_pull_response(future.result(), self.queue, self._next_offset, self._subscription)
        except RewindMQError as error:
            self._on_error(error)
            return
        self._broker_id = result.suggested_broker_id
        self._emit(Point.PULL_CALLBACK, result.next_begin_offset, status=str(result.status))
        if result.status is PullStatus.OFFSET_ILLEGAL:
            self._on_illegal_offset(result)
            return
        self._next_offset = result.next_begin_offset
        if result.status is PullStatus.FOUND:
            self._on_found(result)
        else:
            self._on_empty()
            self.pull()

    def _on_empty(self) -> None:
        """Advance the stored offset past messages that do not match, unless messages are cached."""
        process_queue = self.process_queue
        # No RocketMQ release checks `dropped` here: the race of docs/spec/races.md E.4.
        is_ignored = process_queue.dropped and self._instance.profile.checks_dropped_on_empty_pull
        if process_queue.cached_count == 0 and not is_ignored:
            self._consumer.offset_store.update(
                self.queue, self._next_offset, increase_only=True, owner=process_queue
            )

    def _on_found(self, result: PullResult) -> None:
        if not result.messages:
            self.pull()
            return
        process_queue = self.process_queue
        process_queue.counts.pull_took(self._instance.runtime.clock.monotonic() - process_queue.last_pull)
        process_queue.put_messages(result.messages)
        self._consumer.consume_service.submit(result.messages, self.queue, self.process_queue)
        if self._options.pull_interval > 0:
            self._later(self._options.pull_interval / 1000)
        else:
            self.pull()

    def _on_illegal_offset(self, result: PullResult) -> None:
        """Handle PULL_OFFSET_MOVED (21): correct the offset and let the rebalance assign the queue again.

        If the response has another epoch, a fenced reset moved the offset: restart the queue at once.
        """
        epoch = self.process_queue.epoch
        if epoch is not None and epoch != result.epoch:
            self._consumer.begin_again(self.queue, self.process_queue, result.next_begin_offset, result.epoch)
            return
        _log.warning("the pull request offset illegal, %s %s", self.queue, result.next_begin_offset)
        self._next_offset = result.next_begin_offset
        self._consumer.drop_queue(self.queue, self.process_queue)
        self._instance.spawn(self._correct_offset(result.next_begin_offset))
        self._consumer.forget_pulls(self.process_queue)

    async def _correct_offset(self, offset: int) -> None:
        consumer, profile = self._consumer, self._instance.profile
        store, queue = consumer.offset_store, self.queue
        if profile.illegal_offset_delay > 0:
            await self._instance.runtime.timers.sleep(profile.illegal_offset_delay)
        is_owner = consumer.process_queues.get(queue) is self.process_queue
        if profile.offset_cell_per_queue_object and not is_owner:
            return
        if profile.freeze_illegal_offset:
            store.update_and_freeze(queue, offset)
        else:
            store.update(queue, offset, increase_only=False, owner=self.process_queue)
        await store.persist(queue)
        await consumer.rebalancer.remove_process_queue(queue)
        if profile.illegal_offset_rebalances:
            self._instance.rebalance_service.wake()

    def _on_error(self, error: RewindMQError) -> None:
        if not self.process_queue.dropped:
            _log.warning("execute the pull request exception, %s: %s", self.queue, error)
        profile = self._instance.profile
        if isinstance(error, ResponseError) and error.code == ResponseCode.FLOW_CONTROL:
            self._later(profile.pull_flow_control_delay)
        else:
            self._later(profile.pull_exception_delay)

    def _emit(self, point: Point, offset: int, status: str = "") -> None:
        probe = self._instance.runtime.probe
        if probe is None:
            return
        details = self._consumer.offset_store.details(self.queue, offset, self.process_queue)
        if status:
            details["status"] = status
        probe(point, details)
