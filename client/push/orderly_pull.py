"""OrderlyPullLoop: pulls a queue that is consumed in order and needs a lock.

Specification: docs/spec/client.md C.7.
"""

from __future__ import annotations

import logging
import sys

from rewindmq.client.consume.orderly_queue import OrderlyProcessQueue
from rewindmq.client.consume.rebalance import PullTarget
from rewindmq.client.push.host import PushHost
from rewindmq.client.push.pull_loop import PullLoop
from rewindmq.protocol.body.heartbeat import SubscriptionData
from rewindmq.protocol.errors import RewindMQError

_log = logging.getLogger(__name__)


class OrderlyPullLoop(PullLoop):
    """Pulls while the queue is locked; before the first pull it reads the start offset again.

    Another consumer may have committed an offset between the rebalance and the lock.
    """

    __slots__ = ("_has_offset", "_locked_queue")

    def __init__(self, consumer: PushHost, target: PullTarget) -> None:
        super().__init__(consumer, target)
        assert isinstance(target.process_queue, OrderlyProcessQueue)
        self._locked_queue = target.process_queue
        self._has_offset = False
        self._max_span = sys.maxsize

    def _seconds_to_wait(self) -> float:
        delay = super()._seconds_to_wait()
        if delay or self._locked_queue.locked:
            return delay
        return self._instance.profile.pull_exception_delay

    def _send(self, subscription: SubscriptionData) -> None:
        if self._has_offset:
            super()._send(subscription)
        else:
            self._instance.spawn(self._find_offset())

    async def _find_offset(self) -> None:
        try:
            offset = await self._consumer.start_offset(self.queue)
        except RewindMQError as error:
            _log.error("Failed to compute pull offset, %s: %s", self.queue, error)
            self._later(self._instance.profile.pull_exception_delay)
            return
        if self._is_stopped:
            return
        self._next_offset = offset
        self._has_offset = True
        self.pull()
