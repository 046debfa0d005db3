"""Takes messages from the timer queue into the wheel, and delivers those that are due.

Source: RocketMQ 5.5.1 ``TimerMessageStore``. As there, a message is due when the wall clock has passed the
end of its slot, so it is never early and at most one slot late, plus the time to store it.
Changed: the service wakes when a slot is over; RocketMQ looks every 100 ms. It retries a message until it is
stored, as with ``timerEnableRetryUntilSuccess=true``; RocketMQ discards it after three attempts. If the clock
is set back, a message waits for its time; RocketMQ delivers those at once that are due before the clock's
highest time. A record of the timer topic that is no timer message is skipped; RocketMQ delivers nothing
behind it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from rewindmq.broker.background.schedule import Schedule
from rewindmq.broker.send.appender import MessageAppender
from rewindmq.broker.store.errors import StoreError, cause_of
from rewindmq.broker.store.store import MessageStore
from rewindmq.broker.store.timer.index import DamagedIndexError, Snapshot, TimerIndex
from rewindmq.broker.timer.due_slot import DueSlot
from rewindmq.broker.timer.message import (
    NEVER_ENQUEUED,
    delete_key,
    deletes_other,
    delivered,
    read_message,
    rolled,
    timer_fields,
)
from rewindmq.broker.timer.rate import Rate
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message.properties import TIMER_DEL_UNIQKEY
from rewindmq.protocol.names import TIMER_TOPIC
from rewindmq.protocol.remoting.runtime import Cancellable, Runtime

# Seconds from storing a message until it is taken: many are taken together.
TAKE_SECONDS: Final = 0.02
# The longest sleep, because nothing tells that the machine's clock was set.
_SLEEP_SECONDS: Final = 1.0
# RocketMQ's pause if a message cannot be stored.
_RETRY_SECONDS: Final = 0.5
_ERROR_SECONDS: Final = 10.0
_CLEAN_SECONDS: Final = 30.0
# What is done in one turn of the event loop.
_TAKEN_PER_TURN: Final = 200
_DELIVERED_PER_TURN: Final = 100
_BYTES_PER_TURN: Final = 1_048_576

_log = logging.getLogger(__name__)


class TimerService:
    """Delivers the timer messages of a master.

    Args:
        flush_seconds: the period of saving the index.
        deletes_by_topic: a message that deletes another names its topic, too
            (``appendTopicForTimerDeleteKey``).

    Attributes:
        taken, sent: rates of messages that were put into the wheel, and that were delivered.
    """

    def __init__(
        self,
        runtime: Runtime,
        store: MessageStore,
        appender: MessageAppender,
        index: TimerIndex,
        *,
        flush_seconds: float,
        deletes_by_topic: bool,
    ) -> None:
        self._clock = runtime.clock
        self._timers = runtime.timers
        self._workers = runtime.workers
        self._store = store
        self._appender = appender
        self._index = index
        self._flush_seconds = flush_seconds
        self._deletes_by_topic = deletes_by_topic
        self._is_running = False
        # Before the first slot, everything is taken that the broker had not taken when it stopped: a message
        # that deletes another may be among it.
        self._is_catching_up = True
        self._turn_at = 0.0
        self._next_turn: Cancellable | None = None
        self._due: DueSlot | None = None
        self._is_failing = False
        self._read_bytes = 0
        self._saving: asyncio.Future[None] | None = None
        self.taken = Rate(runtime.clock.now_ms)
        self.sent = Rate(runtime.clock.now_ms)

    # Start and stop

    def begin(self, schedule: Schedule) -> None:
        """See ``BackgroundService``."""
        self._is_running = True
        self._wake(0.0)
        schedule.every(self._flush_seconds, self._flush_seconds, self._save)
        schedule.every(_CLEAN_SECONDS, _CLEAN_SECONDS, self._index.drop_expired)
        schedule.when_clock_changes(lambda moved_ms: self._wake(0.0))

    async def close(self) -> None:
        """Stop delivering and save the index."""
        self._is_running = False
        if self._next_turn is not None:
            self._next_turn.cancel()
            self._next_turn = None
        if self._saving is not None:
            await asyncio.wait((self._saving,))
        if self._index.is_used:
            try:
                self._index.save(self._index.snapshot(self._clock.now_ms()))
            except StoreError as error:
                _log.error("can not save the timer files, some messages will be delivered again: %s", error)

    def expect(self) -> None:
        """Note that a message is stored in the timer topic now."""
        if self._is_running:
            self._wake(TAKE_SECONDS)

    # Turns

    def _wake(self, seconds: float) -> None:
        """Begin a turn in ``seconds``, unless there is an earlier one."""
        at = self._clock.monotonic() + seconds
        if self._next_turn is not None:
            if self._turn_at <= at:
                return
            self._next_turn.cancel()
        self._turn_at = at
        self._next_turn = self._timers.call_later(seconds, self._turn)

    def _turn(self) -> None:
        self._next_turn = None
        try:
            wait = self._work()
        except DamagedIndexError as error:
            wait = self._read_again(error)
        except OSError as error:
            self._forget_unread()
            _log.error("timers: %s, will try again in %g s", cause_of(error), _ERROR_SECONDS)
            wait = _ERROR_SECONDS
        except Exception:
            self._forget_unread()
            _log.exception("timers failed, will try again in %g s", _ERROR_SECONDS)
            wait = _ERROR_SECONDS
        if wait is not None and self._is_running:
            self._wake(wait)

    def _forget_unread(self) -> None:
        """Read a slot again from its beginning if it was not read to its end."""
        if self._due is not None and not self._due.is_read:
            self._due = None

    def _read_again(self, error: DamagedIndexError) -> float:
        """Read the timer queue again from its beginning; return the seconds to wait."""
        self._due = None
        if self._saving is not None:
            # It reads the files that would be deleted.
            return _RETRY_SECONDS
        _log.error("%s; the timer queue is read again", error)
        self._index.read_again()
        self._is_catching_up = True
        return 0.0

    def _work(self) -> float | None:
        """Do one turn's work.

        Returns:
            Seconds to wait, 0 for the next turn of the event loop; None if no message waits.
        """
        now_ms = self._clock.now_ms()
        precision_ms = self._index.precision_ms
        write_ms = now_ms // precision_ms * precision_ms
        if self._is_catching_up:
            has_more = self._take(write_ms)
            self._is_catching_up = has_more is not False
            return _RETRY_SECONDS if has_more is None else 0.0
        due = self._due
        if due is None:
            slot_ms = self._index.next_slot()
            if slot_ms is not None and slot_ms < write_ms:
                due = self._due = DueSlot(slot_ms, self._index.units_of(slot_ms))
        if due is not None and not self._deliver_slot(due):
            return _RETRY_SECONDS
        try:
            has_more = self._take(write_ms)
        except OSError:
            if self._due is None:
                raise
            # The slot goes on; taking is tried again after it.
            return 0.0
        if has_more is None:
            return _RETRY_SECONDS
        if has_more or self._due is not None:
            return 0.0
        slot_ms = self._index.next_slot()
        if slot_ms is None or slot_ms >= write_ms:
            self._index.advance(write_ms)
        if slot_ms is None:
            return None
        left = (slot_ms + precision_ms - now_ms) / 1_000
        return min(max(left, 0.0), _SLEEP_SECONDS) / self._clock.scale

    # Taking messages

    def _take(self, write_ms: int) -> bool | None:
        """Put messages of the timer queue into the wheel; deliver those that are due.

        Returns:
            True if there are more; None if a message could not be stored.
        """
        index = self._index
        size_left = _BYTES_PER_TURN
        for _ in range(_TAKEN_PER_TURN):
            entry = index.next_entry()
            if entry is None:
                return False
            position, size = entry
            properties = self._store.look_properties(position)
            fields = None if properties is None else timer_fields(properties)
            if fields is None:
                _log.error("record at log position %d skipped: it is no timer message", position)
                index.skip()
                continue
            out_ms = fields.out_ms // index.precision_ms * index.precision_ms
            if index.is_delivered(out_ms, position):
                index.skip()
                continue
            if out_ms < write_ms and not (self._is_catching_up and index.is_recent(out_ms, write_ms)):
                # It was due when it came, or long ago.
                if not self._deliver(position, NEVER_ENQUEUED, is_rolled=False, deleted=frozenset()):
                    return None
                index.skip()
                size_left -= size
                if size_left < 0:
                    return True
                continue
            slot_ms, rolls = index.slot_of(out_ms, write_ms)
            if index.is_blocked(slot_ms) or (self._due is not None and self._due.time_ms == slot_ms):
                return self._due is not None
            index.add(
                slot_ms, write_ms, position, size, fields.topic_hash, rolls=rolls, deletes=fields.deletes
            )
            self.taken.count()
        return True

    # Delivering

    def _deliver_slot(self, due: DueSlot) -> bool:
        """Do a turn's work for a slot that is due; return False if a message could not be stored."""
        if not due.collect():
            return True
        size_left = _BYTES_PER_TURN
        for _ in range(_DELIVERED_PER_TURN):
            if size_left < 0:
                break
            if (position := due.next_delete) is not None:
                size_left -= self._note_deleted(position, due.deleted)
                due.drop_delete()
                continue
            following = due.next_message
            if following is None:
                break
            position, enqueue_ms, is_rolled = following
            if not self._deliver(position, enqueue_ms, is_rolled=is_rolled, deleted=due.deleted):
                return False
            size_left -= self._read_bytes
            due.drop_message()
        if due.next_delete is None and due.next_message is None:
            self._index.finish(due.time_ms)
            self._due = None
        return True

    def _note_deleted(self, position: int, deleted: set[str]) -> int:
        """Note the key of the message that is deleted; return the size of what was read."""
        message = read_message(self._store.look_message(position))
        if message is None:
            return 0
        key = message.properties.get(TIMER_DEL_UNIQKEY)
        if key is not None:
            deleted.add(key)
        return message.store_size

    def _deliver(
        self, position: int, enqueue_ms: int, *, is_rolled: bool, deleted: frozenset[str] | set[str]
    ) -> bool:
        """Store a message in its real topic; return False if the caller must try again."""
        self._read_bytes = 0
        message = read_message(self._store.look_message(position))
        if message is None or message.topic != TIMER_TOPIC:
            _log.error("timer message at log position %d is missing, skipped", position)
            return True
        self._read_bytes = message.store_size
        if deleted and delete_key(message, with_topic=self._deletes_by_topic) in deleted:
            return True
        text = message.packed_properties.decode("utf-8", "replace")
        if not is_rolled and deletes_other(text):
            # It came too late to delete another.
            return True
        return self._store_due(message, text, position, enqueue_ms, is_rolled=is_rolled)

    def _store_due(
        self, message: MessageExt, text: str, position: int, enqueue_ms: int, *, is_rolled: bool
    ) -> bool:
        now_ms = self._clock.now_ms()
        due = (rolled if is_rolled else delivered)(message, text, enqueue_ms, now_ms)
        if due is None:
            _log.error(
                "timer message at log position %d dropped: its real topic or queue is invalid", position
            )
            return True
        try:
            self._appender.put_other(due)
        except RequestError as error:
            if error.code == ResponseCode.MESSAGE_ILLEGAL:
                _log.error("timer message at log position %d dropped: %s", position, error.remark)
                return True
            if not self._is_failing:
                self._is_failing = True
                _log.error("can not store a timer message that is due: %s", error.remark)
            return False
        self._is_failing = False
        self.sent.count()
        return True

    # Saving

    def _save(self) -> None:
        if self._saving is None and self._index.has_changed:
            snapshot = self._index.snapshot(self._clock.now_ms())
            self._saving = asyncio.ensure_future(self._workers.run(self._index.save, snapshot))
            self._saving.add_done_callback(lambda saving: self._saved(saving, snapshot))

    def _saved(self, saving: asyncio.Future[None], snapshot: Snapshot) -> None:
        self._saving = None
        if saving.cancelled():
            self._index.keep(snapshot)
        elif (error := saving.exception()) is not None:
            self._index.keep(snapshot)
            _log.error("can not save the timer files, will try again: %s", error)
