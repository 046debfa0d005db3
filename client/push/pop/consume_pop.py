"""ConsumePopConcurrentlyService: calls the listener with popped messages, and acknowledges them.

Source: RocketMQ 5.5.0 ``ConsumeMessagePopConcurrentlyService``. Kept: a message whose invisible time is over
is not consumed, and its result is discarded; a failed message becomes visible after a delay that grows with
its attempts. Changed: the service renews messages that wait or are being consumed, for ``consume_timeout``.
After the last attempt it sends a message to the dead-letter topic; Java's client acknowledges it, so it is
lost. A shutdown makes the messages that the service holds visible at once.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from rewindmq.client.core.periodic import PeriodicTask
from rewindmq.client.push.consume_concurrently import ConsumeBatch, ConsumeConcurrentlyService
from rewindmq.client.push.host import PushHost
from rewindmq.client.push.listener import ConsumeConcurrentlyStatus, MessageListener, ReconsumeLater
from rewindmq.client.push.pop.acknowledger import Acknowledger
from rewindmq.client.push.pop.pop_queues import PopQueues
from rewindmq.client.push.pop.process_queue import HeldMessage, PopProcessQueue
from rewindmq.client.push.send_back import DEFAULT_MAX_RECONSUME_TIMES
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.points import Point
from rewindmq.protocol.pop.topics import normal_topic

# Seconds until the next attempt, by the number of attempts (``DefaultMQPushConsumerImpl#popDelayLevel``).
POP_DELAYS: Final = (10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)
# Checks for messages to renew, in each invisible time; a message is renewed in the second half of its time.
_CHECKS: Final = 4
_HAND_BACK_MS: Final = 1
_DEAD_LETTER: Final = -1
_HAND_BACK_SECONDS: Final = 3.0

_log = logging.getLogger(__name__)


class ConsumePopConcurrentlyService(ConsumeConcurrentlyService):
    """Calls the listener of a consumer that pops. Queues that it pulls are consumed as usual."""

    def __init__(
        self,
        consumer: PushHost,
        listener: MessageListener,
        limit: int,
        queues: PopQueues,
        acks: Acknowledger,
    ) -> None:
        super().__init__(consumer, listener, limit)
        self._queues = queues
        self._acks = acks
        options = consumer.options
        most = options.max_reconsume_times
        self._max_attempts = DEFAULT_MAX_RECONSUME_TIMES if most is None else most
        self._invisible_ms = options.pop_invisible_time
        self._now = consumer.runtime.clock.monotonic
        self._renewer: PeriodicTask | None = None

    def start(self) -> None:
        """Start the periodic checks: for messages to renew, and for pulled messages that take too long."""
        super().start()
        period = self._invisible_ms / 1_000 / _CHECKS
        self._renewer = PeriodicTask(self._consumer.runtime, period, period, self._renew)

    async def stop(self) -> None:
        """Stop as usual; then send the acks that wait, and make other messages visible at once."""
        await super().stop()
        if self._renewer is not None:
            await self._renewer.stop()
        self._queues.close()
        try:
            async with asyncio.timeout(_HAND_BACK_SECONDS):
                await self._hand_back()
        except TimeoutError:
            _log.warning("the broker has not answered: popped messages come again after their invisible time")
        self._acks.cancel()

    def cancel(self) -> None:
        """Like ``stop``, without waiting: the messages come again after their invisible time."""
        super().cancel()
        if self._renewer is not None:
            self._renewer.cancel()

    async def _consume(self, batch: ConsumeBatch) -> None:
        process_queue = batch.process_queue
        if isinstance(process_queue, PopProcessQueue):
            now = self._now()
            for message in batch.messages:
                held = process_queue.held.get(message)
                if held is not None and held.expires <= now:
                    _log.info("the pop message time out so abort consume. %s", held.handle.text())
                    process_queue.give_up(message)
            messages = [message for message in batch.messages if message in process_queue.held]
            if not messages:
                return
            batch = ConsumeBatch(tuple(messages), batch.queue, process_queue)
        for message in batch.messages:
            # A group that has popped before pulls its retry topic; brokers may return its name when it pops.
            message.topic = normal_topic(message.topic, self._consumer.group)
        await super()._consume(batch)

    async def _process_result(
        self, batch: ConsumeBatch, status: ConsumeConcurrentlyStatus | ReconsumeLater
    ) -> None:
        messages, queue, process_queue = batch
        if not isinstance(process_queue, PopProcessQueue):
            await super()._process_result(batch, status)
            return
        consumed, level = len(messages), 0
        if status is not ConsumeConcurrentlyStatus.CONSUME_SUCCESS:
            verdict = status if isinstance(status, ReconsumeLater) else ReconsumeLater()
            consumed = min(max(verdict.consumed, 0), len(messages))
            level = verdict.delay_level
        failed = messages[consumed:]
        process_queue.counts.have_failed(len(failed), len(failed))
        for message in messages[:consumed]:
            held = await self._settle(process_queue, message)
            if held is None:
                self._points.emit(Point.RESULT_DISCARDED, batch)
            else:
                self._acks.ack(queue.topic, held.handle, held.expires)
        await asyncio.gather(*(self._fail(process_queue, queue, message, level) for message in failed))

    async def _settle(self, process_queue: PopProcessQueue, message: MessageExt) -> HeldMessage | None:
        """Take a message with its newest handle; None if its invisible time is over."""
        held = process_queue.held.get(message)
        if held is None:
            return None
        if held.renewal is not None:
            await asyncio.wait((held.renewal,))
        if held.expires <= self._now():
            _log.warning("popTimeout: the result of the message is discarded. %s", held.handle.text())
            process_queue.give_up(message)
            return None
        return process_queue.take(message)

    async def _fail(
        self, process_queue: PopProcessQueue, queue: MessageQueue, message: MessageExt, level: int
    ) -> None:
        held = await self._settle(process_queue, message)
        if held is None:
            return
        if level < 0 or message.reconsume_times >= self._max_attempts:
            if await self._send_back(message, _DEAD_LETTER, queue):
                self._acks.ack(queue.topic, held.handle, held.expires)
                return
            level = len(POP_DELAYS)
        delay = POP_DELAYS[min(level or message.reconsume_times, len(POP_DELAYS) - 1)]
        try:
            await self._acks.change_invisible_time(queue.topic, held.handle, 1_000 * delay)
        except RewindMQError as error:
            _log.error("changePopInvisibleTime fail. %s: %s", held.handle.text(), error)

    async def _renew(self) -> None:
        """Renew messages in the second half of their invisible time; give up those held for too long."""
        now = self._now()
        soon = now + self._invisible_ms / 2_000
        renewals: list[asyncio.Task[None]] = []
        for queue, process_queue in self._queues.all_held():
            for message, held in list(process_queue.held.items()):
                if held.renewal is not None or held.expires > soon or held.expires <= now:
                    continue
                if now - held.popped >= self._timeout:
                    _log.warning("message %s comes again, its listener takes too long", message.msg_id)
                    process_queue.give_up(message)
                    continue
                held.renewal = self._consumer.instance.spawn(self._renew_one(queue, held))
                renewals.append(held.renewal)
        if renewals:
            await asyncio.wait(renewals)

    async def _renew_one(self, queue: MessageQueue, held: HeldMessage) -> None:
        began = self._now()
        try:
            held.handle = await self._acks.change_invisible_time(queue.topic, held.handle, self._invisible_ms)
        except RewindMQError as error:
            _log.warning("message is not renewed, %s: %s", held.handle.text(), error)
        else:
            held.expires = began + self._invisible_ms / 1_000
        finally:
            held.renewal = None

    async def _hand_back(self) -> None:
        """Send the acks that wait, and make all held messages visible."""
        changes = []
        for queue, process_queue in self._queues.all_held():
            for message, held in list(process_queue.held.items()):
                process_queue.give_up(message)
                changes.append(self._hand_back_one(queue, held))
        await asyncio.gather(*changes)
        await self._acks.flush()

    async def _hand_back_one(self, queue: MessageQueue, held: HeldMessage) -> None:
        if held.renewal is not None:
            # The broker would deliver the message for the old handle, and again for the renewed one.
            await asyncio.wait((held.renewal,))
        if held.expires <= self._now():
            return
        try:
            await self._acks.change_invisible_time(queue.topic, held.handle, _HAND_BACK_MS)
        except RewindMQError as error:
            _log.warning("a message is not handed back: %s", error)
