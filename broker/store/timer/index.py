"""Index of the open timer messages: which message of the timer queue is due when (docs/spec/timers.md 4).

The timer queue in the commit log has the messages; the index has their times and log positions. It consists
of RocketMQ's files, so that either broker continues where the other one stopped. Only ``save`` changes what a
restart finds, except the timer log's end, which a restart cuts.

Source: RocketMQ 5.5.1 ``TimerMessageStore#recover``. Changed: if a file is missing or damaged, the messages
are read again from the timer queue. RocketMQ loses them, or delivers all messages again. The checkpoint says
which of them are delivered.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from rewindmq.broker.store.config import StoreConfig
from rewindmq.broker.store.errors import StoreError, cause_of
from rewindmq.broker.store.files.disk import Disk
from rewindmq.broker.store.files.mapped_file import MmapCache
from rewindmq.broker.store.layout.timer import (
    CHECKPOINT_FILE,
    LOG_FOLDER,
    MAGIC_DEFAULT,
    MAGIC_DELETE,
    MAGIC_ROLL,
    NO_UNIT,
    UNIT_BYTES,
    WHEEL_FILE,
)
from rewindmq.broker.store.store import MessageStore
from rewindmq.broker.store.timer.checkpoint import TimerCheckpoint, TimerProgress
from rewindmq.broker.store.timer.log import TimerLog, Unit
from rewindmq.broker.store.timer.wheel import Slot, TimerWheel
from rewindmq.protocol.message.record import RecordError, decode_record
from rewindmq.protocol.names import TIMER_TOPIC

_log = logging.getLogger(__name__)
_CONFIG_FOLDER: Final = "config"


class DamagedIndexError(Exception):
    """Part of the timer log is missing or was overwritten."""


class Snapshot(NamedTuple):
    """The index at one moment, for ``TimerIndex.save``."""

    progress: TimerProgress
    pages: list[tuple[int, bytes]]


class TimerIndex:
    """The index of one store. ``save`` may run on a worker thread while messages are added.

    Attributes:
        precision_ms: length of a slot.
        read_ms: time of the next slot to deliver; earlier ones are delivered.
        offset: offset in the timer queue of the next message to take.
    """

    def __init__(self, root: Path, config: StoreConfig, disk: Disk, store: MessageStore) -> None:
        self.precision_ms = config.timer_precision
        self._window_ms = config.timer_window_slots * self.precision_ms
        self._store = store
        self._checkpoint = TimerCheckpoint(root / _CONFIG_FOLDER / CHECKPOINT_FILE, disk)
        self._wheel = TimerWheel(root / WHEEL_FILE, config.timer_wheel_slots, self.precision_ms, disk)
        self._units = TimerLog(root / LOG_FOLDER, config.mapped_file_size_timer_log, disk, MmapCache(disk))
        self.read_ms = 0
        self.offset = 0
        # Messages before this offset that were due before this time are delivered.
        self._delivered = (0, 0)
        # Log positions of messages that have a unit, although they are taken again.
        self._known: frozenset[int] = frozenset()
        # Read position and offset when last saved.
        self._saved = (0, 0, 0)

    # Opening

    def open(self) -> None:
        """Load the files; the store must be open.

        Raises:
            StoreError: the disk fails.
        """
        try:
            self._checkpoint.load()
            progress = self._checkpoint.progress
            if progress is None:
                self._reset_files()
            elif not self._resume(progress):
                _log.error("timer files are missing or damaged; the timer queue is read again")
                self._reset_files()
        except OSError as error:
            raise StoreError(f"cannot open the timer files: {cause_of(error)}") from None
        progress = progress or TimerProgress()
        self.read_ms = progress.read_ms
        self._delivered = (progress.master_offset, progress.read_ms)
        self._saved = (self.read_ms, self.offset, self._units.end)

    def _reset_files(self) -> None:
        self._units.discard()
        self._wheel.clear()
        self.offset = 0

    def _resume(self, progress: TimerProgress) -> bool:
        """Use the files; return False if they do not belong together."""
        try:
            self._units.load()
        except StoreError as error:
            _log.error("%s", error)
            return False
        if not self._wheel.load() or not self._units.has(progress.log_end):
            # Before the first message, there is no wheel and no log.
            if progress.log_end or self._units.start:
                return False
            self._reset_files()
            self.offset = min(progress.queue_offset, progress.master_offset)
            return True
        for time_ms in tuple(self._wheel.times()):
            if time_ms < progress.read_ms:
                self._wheel.remove(time_ms)
        self.offset = min(progress.queue_offset, progress.master_offset)
        if self._checkpoint.is_sealed:
            return self._cut_slots(progress.log_end)
        self._add_later_units(progress)
        return True

    def _cut_slots(self, end: int) -> bool:
        """Take the units behind ``end`` from the wheel: their messages are taken again."""
        for time_ms in tuple(self._wheel.times()):
            slot = self._wheel.slot(time_ms)
            if slot is None or slot.last < end:
                continue
            last, count = slot.last, slot.size
            while last >= end:
                unit = self._units.read(last)
                # After a second crash, a unit of another slot may be in its place.
                if unit is None or unit.write_ms + unit.left_ms != time_ms or unit.previous >= last:
                    return False
                last, count = unit.previous, count - _weight(unit.magic)
            if last == NO_UNIT:
                self._wheel.remove(time_ms)
            else:
                self._wheel.end(time_ms, Slot(slot.first, last, count))
        self._units.set_end(end)
        return True

    def _add_later_units(self, progress: TimerProgress) -> None:
        """Put the units behind the checkpoint into the wheel: RocketMQ may have stopped before it did."""
        end, known, newest = progress.log_end, set(), None
        for position, unit in self._units.units(progress.log_end):
            end, newest = position + UNIT_BYTES, unit
            known.add(unit.position)
            time_ms = unit.write_ms + unit.left_ms
            slot = self._wheel.slot(time_ms)
            if time_ms >= progress.read_ms and (slot is None or slot.last < position):
                self._wheel.put(time_ms, position, _weight(unit.magic))
        self._units.set_end(end)
        if newest is None and end > self._units.start:
            newest = self._units.read(end - UNIT_BYTES)
        if newest is not None and (offset := self._queue_offset(newest.position)) is not None:
            self.offset = min(offset + 1, progress.master_offset)
        self._known = frozenset(known)

    def _queue_offset(self, position: int) -> int | None:
        record = self._store.look_message(position)
        try:
            return None if record is None else decode_record(record).queue_offset
        except RecordError:
            return None

    # Taking messages

    def next_entry(self) -> tuple[int, int] | None:
        """Return log position and size of the next message to take; None if there is none yet."""
        store = self._store
        if (entry := store.entry(TIMER_TOPIC, 0, self.offset)) is not None:
            return entry[:2]
        first, last = store.min_offset(TIMER_TOPIC, 0), store.max_offset(TIMER_TOPIC, 0)
        self.offset = min(max(self.offset, first), last)
        while self.offset < last and (entry := store.entry(TIMER_TOPIC, 0, self.offset)) is None:
            # The file of the message is deleted, and the queue's minimum is not raised yet.
            found = store.get_message(TIMER_TOPIC, 0, self.offset, 1, None)
            self.offset = max(self.offset + 1, min(found.next_begin_offset, last))
        entry = store.entry(TIMER_TOPIC, 0, self.offset)
        return None if entry is None else entry[:2]

    def is_delivered(self, out_ms: int, position: int) -> bool:
        """Return True if the next message was delivered, or has a unit, when the broker stopped."""
        offset, read_ms = self._delivered
        if self.offset >= offset:
            if self._known:
                self._known = frozenset()
            return False
        return out_ms < read_ms or position in self._known

    def is_recent(self, out_ms: int, write_ms: int) -> bool:
        """Return True if a message that is due already can have a slot: it was due within the window."""
        return write_ms - out_ms <= self._window_ms

    def is_blocked(self, out_ms: int) -> bool:
        """Return True if a message cannot be added until an old slot is delivered."""
        return self._wheel.is_blocked(out_ms)

    def slot_of(self, out_ms: int, write_ms: int) -> tuple[int, bool]:
        """Return the time of a message's slot, and whether it must be rolled then.

        Source: ``TimerMessageStore#doEnqueue``. A message beyond the window is stored again in between, so
        that it does not leave the commit log.
        """
        beyond = out_ms - write_ms - self._window_ms
        if beyond < 0:
            return out_ms, False
        slots = self._window_ms // self.precision_ms
        near = slots // 3 * self.precision_ms
        step = slots // 2 * self.precision_ms if beyond < near else self._window_ms
        return write_ms + step, True

    def add(
        self,
        slot_ms: int,
        write_ms: int,
        position: int,
        size: int,
        topic_hash: int,
        *,
        rolls: bool,
        deletes: bool,
    ) -> None:
        """Add the next message to a slot, and pass to the one after it.

        Raises:
            OSError: the disk is full or fails; nothing has changed.
        """
        magic = MAGIC_DEFAULT | (MAGIC_ROLL if rolls else 0) | (MAGIC_DELETE if deletes else 0)
        slot = self._wheel.slot(slot_ms)
        previous = NO_UNIT if slot is None else slot.last
        # A message that is due already counts as written when it was due: RocketMQ expects no negative rest.
        begin_ms = min(write_ms, slot_ms)
        unit = Unit(previous, magic, begin_ms, slot_ms - begin_ms, position, size, topic_hash)
        self._wheel.put(slot_ms, self._units.append(unit, write_ms), _weight(magic))
        # If the clock was set back, or the message is due already: earlier slots are delivered and cleared.
        self.read_ms = min(self.read_ms, slot_ms)
        self.offset += 1

    def skip(self) -> None:
        """Pass to the message after the next one, which needs no slot."""
        self.offset += 1

    # Delivering

    def next_slot(self) -> int | None:
        """Return the time of the next slot with messages; None if there is none."""
        return self._wheel.next_time(self.read_ms)

    def units_of(self, time_ms: int) -> Iterator[Unit]:
        """Return the units of a slot, the last first.

        Raises:
            OSError: the timer log cannot be read.
            DamagedIndexError: units are missing; call ``read_again``.
        """
        slot = self._wheel.slot(time_ms)
        position = NO_UNIT if slot is None else slot.last
        # Units before the log's start belong to messages that have left the commit log.
        while position >= self._units.start and position != NO_UNIT:
            unit = self._units.read(position)
            if unit is None or unit.write_ms + unit.left_ms != time_ms or unit.previous >= position:
                raise DamagedIndexError(f"the timer log has no unit of slot {time_ms} at {position}")
            yield unit
            position = unit.previous

    def read_again(self) -> None:
        """Forget the index, and take all messages again that are not delivered. Raise OSError on failure."""
        self._delivered = (self.offset, self.read_ms)
        self._known = frozenset()
        self._reset_files()

    def finish(self, time_ms: int) -> None:
        """Note that the messages of a slot are delivered."""
        self._wheel.remove(time_ms)
        self.read_ms = max(self.read_ms, time_ms + self.precision_ms)

    def advance(self, time_ms: int) -> None:
        """Note that no slot before ``time_ms`` has messages."""
        self.read_ms = max(self.read_ms, time_ms)

    @property
    def count(self) -> int:
        """The number of messages that wait. As in RocketMQ, a message that deletes another counts -1."""
        return self._wheel.count

    def count_of(self, time_ms: int) -> int:
        """The number of messages in the slot of a time."""
        slot = self._wheel.slot(time_ms)
        return 0 if slot is None else slot.size

    # Saving

    @property
    def progress(self) -> TimerProgress:
        """The present state, as in the checkpoint."""
        saved = self._checkpoint.progress or TimerProgress()
        return TimerProgress(
            self.read_ms,
            self._units.end,
            self.offset,
            self.offset,
            saved.state_version,
            saved.version_ms,
            saved.version,
        )

    @property
    def is_used(self) -> bool:
        """True if there ever was a message, so that a clean stop must save the files."""
        return self.offset > 0 or self._checkpoint.progress is not None

    @property
    def has_changed(self) -> bool:
        """True if messages were taken or delivered since the last ``snapshot``."""
        return self._saved[1:] != (self.offset, self._units.end) or self._wheel.has_changed

    def snapshot(self, now_ms: int) -> Snapshot:
        """Return the present state, to be saved."""
        progress = self.progress
        moved = self._saved != (self.read_ms, self.offset, self._units.end)
        self._saved = (self.read_ms, self.offset, self._units.end)
        version = progress.version + moved
        progress = TimerProgress(self.read_ms, self._units.end, self.offset, self.offset, 0, now_ms, version)
        return Snapshot(progress, self._wheel.take_pages())

    def save(self, snapshot: Snapshot) -> None:
        """Make a state durable; may run on a worker thread.

        Raises:
            StoreError: the disk fails; call ``keep``.
        """
        # What is delivered must be durable before the files say so.
        self._store.flush()
        try:
            self._units.sync(snapshot.progress.log_end)
            self._wheel.save(snapshot.pages)
            self._checkpoint.save(snapshot.progress)
        except OSError as error:
            raise StoreError(f"cannot write {cause_of(error)}") from None

    def save_master_progress(self, master: TimerProgress) -> None:
        """Save a master's progress at its slave, which has no other timer files. May run on a worker thread.

        Raises:
            StoreError: the disk fails.
        """
        # Offset 0 makes either broker read the timer queue again; RewindMQ passes over what is delivered.
        progress = TimerProgress(
            max(master.read_ms, 0),
            0,
            0,
            max(master.master_offset, 0),
            master.state_version,
            master.version_ms,
            master.version,
        )
        if progress == self._checkpoint.progress:
            return
        try:
            self._checkpoint.save(progress)
        except OSError as error:
            raise StoreError(f"cannot write {cause_of(error)}") from None

    def keep(self, snapshot: Snapshot) -> None:
        """Take back a state that could not be saved; the next one has it, too."""
        self._wheel.keep(snapshot.pages)
        self._saved = (0, 0, -1)

    def drop_expired(self) -> None:
        """Delete files of the timer log whose messages have left the commit log."""
        self._units.drop_expired(self._store.min_commit_log_offset)


def _weight(magic: int) -> int:
    return -1 if magic & MAGIC_DELETE else 1
