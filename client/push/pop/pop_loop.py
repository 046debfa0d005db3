"""PopLoop: pops one queue of a push consumer, or all queues of a topic at a broker, one request at a time.

Callbacks drive the loop: there is no task per POP. Source: RocketMQ 5.5.0
``DefaultMQPushConsumerImpl#popMessage``, ``PullAPIWrapper#popAsync``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from rewindmq.client.consume.process_queue import FLOW_CONTROL_DELAY
from rewindmq.client.push.host import PushHost
from rewindmq.client.push.pop.pop_result import PopResult, PopStatus, decode_pop_response
from rewindmq.client.push.pop.process_queue import PopProcessQueue
from rewindmq.client.push.pull_loop import BROKER_HOLD_MS, SUSPENDED_DELAY
from rewindmq.protocol.body.heartbeat import ConsumeFromWhere, SubscriptionData
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import ClientError, ResponseError, RewindMQError
from rewindmq.protocol.header.pop import PopMessageRequestHeader
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.pop.extra_info import ExtraInfo
from rewindmq.protocol.remoting.runtime import Cancellable

POP_TIMEOUT: Final = BROKER_HOLD_MS / 1_000 + 10.0

# RocketMQ's ``ConsumeInitMode``: where a group without progress begins.
_INIT_MIN: Final = 0
_INIT_MAX: Final = 1

_log = logging.getLogger(__name__)


class PopLoop:
    """Pops until it is stopped.

    Args:
        on_filtered: called with the handle of each message whose tag the subscription does not name, and the
            protocol second in which the message becomes visible.
    """

    def __init__(
        self,
        consumer: PushHost,
        queue: MessageQueue,
        process_queue: PopProcessQueue,
        on_filtered: Callable[[ExtraInfo, float], None],
    ) -> None:
        self._consumer = consumer
        self._instance = consumer.instance
        self._options = consumer.options
        self.queue = queue
        self.process_queue = process_queue
        self._on_filtered = on_filtered
        self._timer: Cancellable | None = None
        self._request: asyncio.Future[RemotingCommand] | None = None
        self._is_stopped = False

    def start(self, delay: float) -> None:
        """Pop now, or ``delay`` seconds from now."""
        if delay > 0:
            self._later(delay)
        else:
            self._pop()

    def stop(self) -> None:
        """Pop no more. The messages of a request in flight are consumed: no other consumer gets them soon."""
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()

    @property
    def is_over(self) -> bool:
        """True if the loop is stopped, and no message is held or may still arrive."""
        return self._is_stopped and self._request is None and not self.process_queue.held

    def cancel(self) -> None:
        """Stop, and cancel the request. The broker delivers the messages of its response again later."""
        self.stop()
        if self._request is not None:
            self._request.remove_done_callback(self._on_response)
            self._request.cancel()

    def _pop(self) -> None:
        self._timer = None
        if self._is_stopped:
            return
        self.process_queue.last_pull = self._instance.runtime.clock.monotonic()
        delay = self._seconds_to_wait()
        subscription = self._consumer.subscriptions.get(self.queue.topic)
        if delay:
            self._later(delay)
        elif subscription is None:
            self._later(self._instance.profile.pull_exception_delay)
        else:
            self._send(subscription)

    def _seconds_to_wait(self) -> float:
        if not self._consumer.is_running:
            return self._instance.profile.pull_exception_delay
        if self._consumer.is_suspended:
            return SUSPENDED_DELAY
        if self.process_queue.cached_count > self._options.pop_threshold_for_queue:
            return FLOW_CONTROL_DELAY
        return 0.0

    def _later(self, delay: float) -> None:
        if not self._is_stopped:
            self._timer = self._instance.runtime.timers.call_later(delay, self._pop)

    def _send(self, subscription: SubscriptionData) -> None:
        instance, options, queue = self._instance, self._options, self.queue
        address = instance.routes.master_address(queue.broker_name)
        if address is None:
            instance.spawn(self._find_broker())
            return
        is_first = options.consume_from_where is ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
        header = PopMessageRequestHeader(
            consumer_group=self._consumer.group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            max_msg_nums=options.pop_batch_nums,
            invisible_time=options.pop_invisible_time,
            poll_time=BROKER_HOLD_MS,
            born_time=instance.runtime.clock.now_ms(),
            init_mode=_INIT_MIN if is_first else _INIT_MAX,
            exp_type=subscription.expression_type,
            exp=subscription.sub_string,
            order=False,
        )
        command = instance.api.command(RequestCode.POP_MESSAGE, header)
        self._request = instance.remoting.invoke(address, command, POP_TIMEOUT)
        self._request.add_done_callback(self._on_response)

    async def _find_broker(self) -> None:
        try:
            await self._instance.routes.find_master_address(self.queue.topic, self.queue.broker_name)
        except ClientError as error:
            _log.warning("POP of %s: %s", self.queue, error)
            self._later(self._instance.profile.pull_exception_delay)
        else:
            self._pop()

    def _on_response(self, future: asyncio.Future[RemotingCommand]) -> None:
        self._request = None
        if future.cancelled():
            return
        callbacks = self._instance.callbacks
        if callbacks.is_exhausted:
            callbacks.run(lambda: self._handle_response(future))
        else:
            self._handle_response(future)

    def _handle_response(self, future: asyncio.Future[RemotingCommand]) -> None:
        try:
            result = decode_pop_response(future.result(), self.queue)
        except RewindMQError as error:
            self._on_error(error)
            return
        if result.status is PopStatus.POLLING_FULL:
            self._later(self._instance.profile.pull_exception_delay)
        elif result.messages:
            self._on_found(result)
        else:
            self._pop()

    def _on_found(self, result: PopResult) -> None:
        process_queue, queue = self.process_queue, self.queue
        now = self._instance.runtime.clock.monotonic()
        process_queue.counts.pull_took(now - process_queue.last_pull)
        subscription = self._consumer.subscriptions.get(queue.topic)
        tags = set() if subscription is None or subscription.class_filter_mode else subscription.tags_set
        wanted: list[MessageExt] = []
        for message, handle in result.messages:
            if tags and message.tags not in tags:
                # The broker compares only hashes of tags.
                self._on_filtered(handle, now + handle.invisible_time / 1_000)
                continue
            process_queue.hold(message, handle, now)
            wanted.append(message)
        if wanted:
            self._consumer.consume_service.submit(wanted, queue, process_queue)
        if self._options.pull_interval > 0:
            self._later(self._options.pull_interval / 1_000)
        else:
            self._pop()

    def _on_error(self, error: RewindMQError) -> None:
        _log.warning("execute the pop request exception, %s: %s", self.queue, error)
        profile = self._instance.profile
        if isinstance(error, ResponseError) and error.code == ResponseCode.FLOW_CONTROL:
            self._later(profile.pull_flow_control_delay)
        else:
            self._later(profile.pull_exception_delay)
