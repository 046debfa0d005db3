"""The timer messages of a broker: what the rest of the broker uses."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from rewindmq.broker.send.appender import MessageAppender
from rewindmq.broker.store.errors import StoreError
from rewindmq.broker.store.model import PutResult, StoredMessage
from rewindmq.broker.store.store import MessageStore
from rewindmq.broker.store.timer.checkpoint import TimerProgress, decode_progress
from rewindmq.broker.store.timer.index import TimerIndex
from rewindmq.broker.timer.hook import TimerHook
from rewindmq.broker.timer.service import TimerService
from rewindmq.protocol.message.properties import TIMER_DELIVER_MS
from rewindmq.protocol.names import TIMER_TOPIC
from rewindmq.protocol.remoting.runtime import Clock


class TimerMessages:
    """Stores, counts and delivers timer messages.

    Attributes:
        hook: the put-message hook.
        service: delivers; runs at a master only.
    """

    def __init__(
        self,
        clock: Clock,
        store: MessageStore,
        appender: MessageAppender,
        index: TimerIndex,
        hook: TimerHook,
        service: TimerService,
    ) -> None:
        self._clock = clock
        self._store = store
        self._appender = appender
        self._index = index
        self.hook = hook
        self.service = service

    def put(self, message: StoredMessage, deliver_ms: int) -> PutResult:
        """Store a message of the broker itself, which reaches its topic at a time; at once if it has passed.

        The message gets TIMER_DELIVER_MS; neither this put nor the delivery checks the topic. The delay may
        be longer than ``timerMaxDelaySec``.

        Args:
            message: with its real topic and queue. If it has TIMER_DEL_UNIQKEY, it deletes the message with
                this
                key and the same ``deliver_ms``.

        Raises:
            RequestError: see ``MessageAppender.put``; nothing is stored.
        """
        properties = message.properties
        if properties and not properties.endswith(b"\x02"):
            properties += b"\x02"
        properties += f"{TIMER_DELIVER_MS}\x01{deliver_ms}\x02".encode()
        message = msgspec.structs.replace(message, properties=properties)
        if deliver_ms > self._clock.now_ms():
            message = self.hook.redirected(message, deliver_ms)
        return self._appender.put_other(message, is_counted=False)

    @property
    def delivered_until(self) -> int:
        """The time in ms up to which messages are delivered: those with such a ``deliver_ms`` are in their
        topics.

        Only a message that is put later, when its time has passed already, may follow.
        """
        now_ms, index = self._clock.now_ms(), self._index
        until = now_ms // index.precision_ms * index.precision_ms
        slot_ms = index.next_slot()
        if slot_ms is not None and slot_ms < until:
            until = slot_ms
        if index.next_entry() is not None:
            # It may be due before it is taken.
            until = min(until, self._store.store_time(TIMER_TOPIC, 0, index.offset))
        return until

    @property
    def progress(self) -> TimerProgress:
        """How far the messages are taken and delivered, as in ``config/timercheck``."""
        return self._index.progress

    def save_master_progress(self, data: bytes) -> None:
        """Save the progress of this slave's master, for a later start as the master; on a worker thread.

        Args:
            data: body of the response to GET_TIMER_CHECK_POINT (60).

        Raises:
            StoreError: it is no progress, or the disk fails.
        """
        progress = decode_progress(data)
        if progress is None:
            raise StoreError(f"the master's timer progress has {len(data)} bytes")
        self._index.save_master_progress(progress)

    def runtime_info(self) -> Mapping[str, str]:
        """Return the fields of GET_BROKER_RUNTIME_INFO (28)."""
        slot_ms = self._index.next_slot()
        behind_ms = 0 if slot_ms is None else self._clock.now_ms() - slot_ms
        untaken = self._store.max_offset(TIMER_TOPIC, 0) - self._index.offset
        return {
            "timerReadBehind": str(max(behind_ms, 0) // 1_000),
            "timerOffsetBehind": str(untaken),
            "timerCongestNum": str(self._index.count),
            "timerEnqueueTps": str(round(self.service.taken.value, 4)),
            "timerDequeueTps": str(round(self.service.sent.value, 4)),
        }
