"""The chain of pulls of a queue that is consumed in order: it needs the lock (docs/spec/client.md C.7)."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

from rewindmq.client.orderly_queue import OrderlyProcessQueue
from rewindmq.client.pull_loop import PullChain
from rewindmq.client.rebalance import PullTarget
from rewindmq.protocol.body.heartbeat import SubscriptionData
from rewindmq.protocol.errors import RewindMQError

if TYPE_CHECKING:
    from rewindmq.client.push_consumer import PushConsumer

_log = logging.getLogger(__name__)


class OrderlyPullChain(PullChain):
    """Pulls while the queue is locked, from where the broker says at the first time.

    That is asked again because somebody else may have moved the offset between the rebalance and the lock.
    """

    __slots__ = ("_is_placed", "_locked_queue")

    def __init__(self, consumer: PushConsumer, target: PullTarget) -> None:
        super().__init__(consumer, target)
        assert isinstance(target.process_queue, OrderlyProcessQueue)
        self._locked_queue = target.process_queue
        self._is_placed = False
        self._max_span = sys.maxsize

    def _reason_to_wait(self) -> float:
        delay = super()._reason_to_wait()
        if delay or self._locked_queue.locked:
            return delay
        return self._instance.switches.pull_exception_delay

    def _send(self, subscription: SubscriptionData) -> None:
        if self._is_placed:
            super()._send(subscription)
        else:
            self._instance.spawn(self._place())

    async def _place(self) -> None:
        try:
            offset = await self._consumer.start_offset(self.queue)
        except RewindMQError as error:
            _log.error("Failed to compute pull offset, %s: %s", self.queue, error)
            self._later(self._instance.switches.pull_exception_delay)
            return
        if self._is_stopped:
            return
        self._next_offset = offset
        self._is_placed = True
        self.pull()
