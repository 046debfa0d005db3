"""Stores checkpoints and acks in the revive topic, which they reach when their time has come.

Source: RocketMQ 5.5.1 ``PopMessageProcessor#buildCkMsg``, ``AckMessageProcessor#appendAck``: a record is a
timer message. A checkpoint is due one second before its messages are visible again, an ack when they are.
"""

from __future__ import annotations

import logging
from typing import Final

from rewindmq.broker.store.model import StoredMessage
from rewindmq.broker.timer.timers import TimerMessages
from rewindmq.protocol.pop.records import AckMsg, BatchAckMsg, PopCheckPoint
from rewindmq.protocol.pop.topics import ACK_TAG, BATCH_ACK_TAG, CK_TAG
from rewindmq.protocol.remoting.runtime import Clock
from rewindmq.protocol.text import java_hash

_log = logging.getLogger(__name__)

_CK_CODE: Final = java_hash(CK_TAG)
_ACK_CODE: Final = java_hash(ACK_TAG)
_BATCH_ACK_CODE: Final = java_hash(BATCH_ACK_TAG)
# ``PopAckConstants.ackTimeInterval``.
_ACK_TIME_INTERVAL_MS: Final = 1_000
# Invisible times end within so many years; longer ones would exceed the range of a time.
_LONGEST_MS: Final = 100 * 365 * 86_400_000


class ReviveLog:
    """Writes the records of the broker's revive topic.

    Args:
        topic: the revive topic.
        queue_nums: the number of its queues.
        store_host: the broker's packed address, which is the records' born host.

    Attributes:
        topic: the revive topic.
        queue_nums: the number of its queues.
    """

    def __init__(
        self, clock: Clock, timers: TimerMessages, topic: str, queue_nums: int, store_host: bytes
    ) -> None:
        self._now_ms = clock.now_ms
        self._scale = clock.scale
        self._put = timers.put
        self._store_host = store_host
        self._count = 0
        self.topic = topic
        self.queue_nums = queue_nums

    def next_queue(self) -> int:
        """Return the revive queue of the next POP: each in turn."""
        self._count += 1
        return (self._count - 1) % self.queue_nums

    def has_queue(self, queue_id: int) -> bool:
        """Return True for the queues that are read; a client may send any number in a handle."""
        return 0 <= queue_id < self.queue_nums

    def visible_at(self, pop_time: int, invisible_time: int) -> int:
        """Return when messages are visible again, in ms of the wall clock.

        An invisible time is scaled like all waits, ``pop_time`` is not.
        """
        wait = min(max(invisible_time, -_LONGEST_MS), _LONGEST_MS)
        return pop_time + (wait if self._scale == 1.0 else round(wait * self._scale))

    def put_check_point(self, point: PopCheckPoint, queue_id: int) -> None:
        """Store a checkpoint.

        Args:
            queue_id: its revive queue.

        Raises:
            RequestError: see ``MessageAppender.put``; nothing is stored.
        """
        due = self.visible_at(point.pop_time, point.invisible_time) - _ACK_TIME_INTERVAL_MS
        self._store(queue_id, point.encode(), point.unique_id(), CK_TAG, _CK_CODE, due)

    def put_ack(self, ack: AckMsg, queue_id: int, invisible_time: int) -> bool:
        """Store an ack, or a batch of them.

        Args:
            queue_id: the revive queue in its handle. No record is stored for one that is not read.
            invisible_time: that of the handle, ms.

        Returns:
            Whether it is stored.

        Raises:
            RequestError: see ``MessageAppender.put``; nothing is stored.
        """
        if not self.has_queue(queue_id):
            _log.warning("ack of %s ignored: there is no revive queue %d", ack.unique_id(), queue_id)
            return False
        due = self.visible_at(ack.pop_time, invisible_time)
        tag, code = (BATCH_ACK_TAG, _BATCH_ACK_CODE) if isinstance(ack, BatchAckMsg) else (ACK_TAG, _ACK_CODE)
        self._store(queue_id, ack.encode(), ack.unique_id(), tag, code, due)
        return True

    def _store(self, queue_id: int, body: bytes, unique_key: str, tag: str, tags_code: int, due: int) -> None:
        message = StoredMessage(
            self.topic,
            queue_id,
            body,
            f"UNIQ_KEY\x01{unique_key}\x02TAGS\x01{tag}\x02".encode(),
            tags_code,
            born_timestamp=self._now_ms(),
            born_host=self._store_host,
        )
        self._put(message, due)
