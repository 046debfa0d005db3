"""Delivers delayed messages: stores them in their real topic when due (docs/spec/broker.md B.12).

Source: RocketMQ 4.9.4 ``ScheduleMessageService``. As there, the service reads every level 1 s after the
start, and later on ticks of 100 ms. Unlike 4.9.4, it skips the ticks at which a level is empty or its first
message is not due, because nothing would be delivered.
Changed: the wall clock does not decide when a message is due, see ``DueTimes``. The service logs and skips a
message that can never be delivered; 4.9.4 retries it for ever and delivers no later message of the level. The
service saves its progress only after the delivered messages are durable, so that not even a power failure
loses a message.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from rewindmq.broker.background.schedule import Schedule
from rewindmq.broker.delay.due_times import DueTimes
from rewindmq.broker.offsets.delay_offsets import DelayOffsets
from rewindmq.broker.send.appender import MessageAppender
from rewindmq.broker.send.sender import tags_code_of
from rewindmq.broker.store.consume_queue.tags_code import DelayLevels
from rewindmq.broker.store.errors import StoreError, cause_of
from rewindmq.broker.store.model import StoredMessage
from rewindmq.broker.store.store import MessageStore
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message.properties import REAL_QID, REAL_TOPIC
from rewindmq.protocol.message.record import RecordError, decode_record
from rewindmq.protocol.names import SCHEDULE_TOPIC, TRANS_HALF_TOPIC
from rewindmq.protocol.remoting.runtime import Cancellable, Runtime

FIRST_LOOK_SECONDS: Final = 1.0
FIRST_SAVE_SECONDS: Final = 10.0
# The pause after an unexpected error.
_ERROR_SECONDS: Final = 10.0
# Messages delivered in one turn of the event loop.
_MESSAGES_PER_TURN: Final = 128

_log = logging.getLogger(__name__)


class DelayService:
    """Delivers due messages, level by level, each level in the order of storing.

    Args:
        pause: seconds until the next try if a message can not be stored.
        save_seconds: the period of saving progress.
    """

    def __init__(
        self,
        runtime: Runtime,
        store: MessageStore,
        appender: MessageAppender,
        levels: DelayLevels,
        offsets: DelayOffsets,
        *,
        pause: float,
        save_seconds: float,
    ) -> None:
        self._clock = runtime.clock
        self._due_times: DueTimes | None = None
        self._timers = runtime.timers
        self._workers = runtime.workers
        self._store = store
        self._appender = appender
        self._levels = levels
        self._offsets = offsets
        self._pause = pause
        self._save_seconds = save_seconds
        # Timers of the levels that have messages.
        self._looks: dict[int, Cancellable] = {}
        self._failing: set[int] = set()
        self._saving: asyncio.Future[None] | None = None

    # Start and stop.

    def begin(self, schedule: Schedule) -> None:
        """See ``BackgroundService``."""
        first_look = self._clock.monotonic() + FIRST_LOOK_SECONDS
        self._due_times = DueTimes(self._clock, self._levels, first_look)
        for level in range(1, self._levels.highest + 1):
            self._look_in(level, FIRST_LOOK_SECONDS)
        schedule.every(FIRST_SAVE_SECONDS, self._save_seconds, self._save)
        schedule.when_clock_changes(self._travel)

    async def close(self) -> None:
        """Stop delivering and save the progress."""
        self._due_times = None
        for look in self._looks.values():
            look.cancel()
        self._looks.clear()
        if self._saving is not None:
            await asyncio.wait((self._saving,))
        if self._offsets.has_changed:
            try:
                self._write(dict(self._offsets.table))
            except StoreError as error:
                _log.error("can not save delay offsets, some messages will be delivered again: %s", error)

    def expect(self, level: int) -> None:
        """Note that a message is stored in a level now."""
        if self._due_times is None:
            return
        self._due_times.note(level, self._store.max_offset(SCHEDULE_TOPIC, level - 1))
        if level not in self._looks:
            self._look_in(level, self._due_times.until_tick(0.0))

    # Reading.

    def _look_in(self, level: int, seconds: float) -> None:
        self._looks[level] = self._timers.call_later(seconds, self._look, level)

    def _travel(self, moved_ms: int) -> None:
        if self._due_times is None or moved_ms <= 0:
            return
        self._due_times.travel(moved_ms / 1_000 / self._clock.scale)
        for level, look in tuple(self._looks.items()):
            look.cancel()
            self._look_in(level, 0.0)

    def _look(self, level: int) -> None:
        del self._looks[level]
        assert self._due_times is not None
        try:
            wait = self._deliver_due(level, self._due_times)
        except OSError as error:
            _log.error("delay level %d: %s, will try again in %g s", level, cause_of(error), _ERROR_SECONDS)
            wait = _ERROR_SECONDS
        except Exception:
            _log.exception("delay level %d failed, will try again in %g s", level, _ERROR_SECONDS)
            wait = _ERROR_SECONDS
        if wait is not None:
            self._look_in(level, self._due_times.until_tick(wait) if wait else 0.0)

    def _deliver_due(self, level: int, due_times: DueTimes) -> float | None:
        """Deliver at most one turn's messages.

        Returns:
            Seconds to wait, 0 for the next turn of the event loop; None if the level has no more messages.
        """
        offset = self._corrected_offset(level)
        for _ in range(_MESSAGES_PER_TURN):
            entry = self._store.entry(SCHEDULE_TOPIC, level - 1, offset)
            if entry is None:
                return None
            position, _, due_ms = entry
            if left := due_times.seconds_left(level, offset, due_ms):
                return left
            if not self._deliver(level, position):
                return self._pause
            offset += 1
            self._offsets.table[level] = offset
        return 0.0

    def _corrected_offset(self, level: int) -> int:
        """Return the level's offset, moved into the queue if messages were deleted or lost in a crash."""
        offset = self._offsets.table.get(level, 0)
        first = self._store.min_offset(SCHEDULE_TOPIC, level - 1)
        last = self._store.max_offset(SCHEDULE_TOPIC, level - 1)
        corrected = min(max(offset, first), last)
        while corrected < last and self._store.entry(SCHEDULE_TOPIC, level - 1, corrected) is None:
            # The message's file is deleted, but 4.x does not raise the minimum offset of a queue without
            # messages.
            found = self._store.get_message(SCHEDULE_TOPIC, level - 1, corrected, 1, None)
            corrected = min(found.next_begin_offset, last)
        if corrected == offset:
            return offset
        _log.error(
            "delay level %d: offset %d is not in [%d, %d], continuing at %d",
            level,
            offset,
            first,
            last,
            corrected,
        )
        self._offsets.table[level] = corrected
        return corrected

    # Delivering.

    def _deliver(self, level: int, position: int) -> bool:
        """Store the message in its real topic; return False if the caller must try again."""
        message = self._real_message(position)
        if message is None:
            return True
        try:
            self._appender.put_due(message, level - 1)
        except RequestError as error:
            if error.code == ResponseCode.MESSAGE_ILLEGAL:
                _log.error("delayed message at log position %d dropped: %s", position, error.remark)
                return True
            if level not in self._failing:
                self._failing.add(level)
                _log.error("delay level %d: can not store a message that is due: %s", level, error.remark)
            return False
        self._failing.discard(level)
        return True

    def _real_message(self, position: int) -> StoredMessage | None:
        """Decode a record of the schedule topic; log and return None if it holds no message."""
        record = self._store.look_message(position)
        try:
            delayed = None if record is None else decode_record(record)
        except RecordError:
            delayed = None
        if delayed is None:
            _log.error("delayed message at log position %d is missing, skipped", position)
            return None
        topic = delayed.properties.get(REAL_TOPIC)
        queue_id = delayed.properties.get(REAL_QID, "")
        if not topic or not (queue_id.isascii() and queue_id.isdigit()) or topic == TRANS_HALF_TOPIC:
            _log.error(
                "delayed message at log position %d dropped: its real topic or queue is invalid, topic %r",
                position,
                topic,
            )
            return None
        return _delivered(delayed, topic, int(queue_id))

    # Saving.

    def _save(self) -> None:
        if self._saving is None and self._offsets.has_changed:
            self._saving = asyncio.ensure_future(self._workers.run(self._write, dict(self._offsets.table)))
            self._saving.add_done_callback(self._saved)

    def _write(self, table: dict[int, int]) -> None:
        # The delivered messages must be durable before the file says that they are delivered.
        self._store.flush()
        self._offsets.save(table)

    def _saved(self, saving: asyncio.Future[None]) -> None:
        self._saving = None
        if not saving.cancelled() and (error := saving.exception()) is not None:
            _log.error("can not save delay offsets, will try again: %s", error)


def _delivered(delayed: MessageExt, topic: str, queue_id: int) -> StoredMessage:
    """Return the message as it was sent; it keeps its properties (docs/spec/store.md 3.5)."""
    properties = delayed.packed_properties
    return StoredMessage(
        topic,
        queue_id,
        delayed.stored_body,
        properties,
        tags_code_of(properties.decode("utf-8", "replace")),
        delayed.flag,
        delayed.sys_flag,
        delayed.born_timestamp,
        delayed.packed_born_host,
        delayed.reconsume_times,
    )
