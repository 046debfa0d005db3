"""A consume queue: the log position of each message of one queue of a topic (docs/spec/store.md 4)."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final, NoReturn

from rewindmq.broker.store.config import CQ_ENTRY_BYTES
from rewindmq.broker.store.consume_queue.queue_pulls import QueuePulls
from rewindmq.broker.store.files.disk import Disk
from rewindmq.broker.store.files.mapped_file import DroppedFile, MappedFile, MappedFileQueue, MmapCache
from rewindmq.broker.store.files.refused_writes import REFUSED_WRITES
from rewindmq.protocol.limits import MAX_TOPIC_LENGTH
from rewindmq.protocol.names import MAX_NAME_BYTES

# Log position, record size, tagsCode.
ENTRY: Final = struct.Struct(">qiq")
_NUMBERS: Final = 3
# Entries of a batch per write: RocketMQ's clients send batches of about this size.
_RUN: Final = 64
# Size field of filler entries, which have no message and precede the first entry of a queue's first file.
FILLER_SIZE: Final = 0x7FFF_FFFF
_FILLER: Final = ENTRY.pack(0, FILLER_SIZE, 0)
_POSITION_AND_SIZE: Final = struct.Struct(">qi8x")
_ALLOCATION_BYTES: Final = 16_384
# RocketMQ checks at most this many of a queue's last files (ConsumeQueue#recover).
_FILES_CHECKED: Final = 3
# Bytes read at once: most files are large holes behind a few entries.
_CHUNK_BYTES: Final = 3_276 * CQ_ENTRY_BYTES
_ANY_POSITION: Final = 0x7FFF_FFFF_FFFF_FFFF
# Shared by all queues without counts of pulls; it stays empty.
NO_PULLS: Final[dict[str, QueuePulls]] = {}


@cache
def entry_run(count: int) -> struct.Struct:
    """Return the layout of ``count`` consecutive entries."""
    return struct.Struct(">" + ENTRY.format.removeprefix(">") * count)


def topic_field_of(topic: str) -> bytes:
    """Return a topic as in a record, length byte and name; empty if too long for a V1 record."""
    name = topic.encode()
    return bytes((len(name),)) + name if len(name) <= MAX_TOPIC_LENGTH else b""


def long_topic_field_of(topic: str) -> bytes:
    """Return a topic as in a V2 record, two bytes of length and name; empty if it can name no folder."""
    name = topic.encode()
    return len(name).to_bytes(2, "big") + name if len(name) <= MAX_NAME_BYTES else b""


class ConsumeQueue:
    """A consume queue. The index of an entry is the message's queue offset.

    Attributes:
        topic_field: the topic as in a record, length byte and name; empty if too long for a V1 record.
        min_offset: index of the first message kept.
        max_offset: index of the next message.
        max_physical_offset: log position behind the newest record with an entry here, -1 if there is none.
        room_end: index up to which entries may be appended without ``make_room``.
        put_requests: requests that stored messages here, since statistics last read these three numbers. The
            queue is in ``PutCounts`` while they are not 0.
        put_extra: their messages beyond one for each request.
        put_bytes: bytes of their records.
        pulls: counts of pulls by group, see ``PullCounts``.
    """

    __slots__ = (
        "_disk",
        "_flushed",
        "_former",
        "_life",
        "active",
        "active_index",
        "files",
        "max_offset",
        "max_physical_offset",
        "min_offset",
        "pulls",
        "put_bytes",
        "put_extra",
        "put_requests",
        "queue_id",
        "room_end",
        "topic",
        "topic_field",
    )

    def __init__(
        self, topic: str, queue_id: int, folder: Path, file_bytes: int, disk: Disk, pool: MmapCache
    ) -> None:
        self.topic = topic
        self.queue_id = queue_id
        self.topic_field = topic_field_of(topic)
        self.files = MappedFileQueue(folder, file_bytes, disk, pool)
        self._disk = disk
        self.active: MappedFile | None = None
        # Index of the first entry of the active file.
        self.active_index = 0
        self.min_offset = 0
        self.max_offset = 0
        self.max_physical_offset = -1
        self.room_end = 0
        # The life of the queue, and the index in it before which all entries are durable.
        self._flushed = (0, 0)
        self._life = 0
        # Files of earlier lives that are not deleted yet, in order of base.
        self._former: list[DroppedFile] = []
        self.put_requests = self.put_extra = self.put_bytes = 0
        self.pulls = NO_PULLS

    # Writing

    def make_room(self, count: int, now_ms: int) -> None:
        """Ensure that ``count`` entries can be appended.

        Raises:
            OSError: the disk is full, or mapping a file fails; no entry has been written.
        """
        self.delete_former()
        end = self.max_offset + count
        files = self.files.files
        if not files:
            self._use(self.files.append_file(0, now_ms))
        while files[-1].base + files[-1].size < end * CQ_ENTRY_BYTES:
            full = files[-1]
            self._claim(full, full.size)
            self.files.append_file(full.base + full.size, now_ms)
        last = files[-1]
        self._claim(last, end * CQ_ENTRY_BYTES - last.base)
        # Map the file now, while an error is harmless: once a record is in the log, its entry must be
        # written.
        for file in files[files.index(self.active or last) :]:
            file.open_for_writing()
        self.room_end = (last.base + last.allocated) // CQ_ENTRY_BYTES

    def _claim(self, file: MappedFile, end: int) -> None:
        if file.allocated < end:
            claim_to = min(max(end, file.allocated + _ALLOCATION_BYTES), file.size)
            self._disk.allocate(file.path, file.allocated, claim_to - file.allocated)
            file.allocated = claim_to

    def _use(self, file: MappedFile) -> None:
        self.active = file
        self.active_index = file.base // CQ_ENTRY_BYTES
        file.on_map_given_up = self._forget_room

    def _forget_room(self) -> None:
        self.room_end = 0

    def append(self, physical_offset: int, size: int, tags_code: int, now_ms: int) -> None:
        """Write the entry of the next message; there must be room.

        Raises:
            OSError: the disk refused a write to a mapping, of the entry or before; the entry is not there.
        """
        file = self.active
        assert file is not None
        at = (self.max_offset - self.active_index) * CQ_ENTRY_BYTES
        if at == file.size:
            file = self._next_file(file)
            at = 0
        ENTRY.pack_into(file.map or file.open_for_writing(), at, physical_offset, size, tags_code)
        if REFUSED_WRITES.error is not None:
            self._refuse(1)
        file.mtime_ms = now_ms
        self.max_offset += 1
        self.max_physical_offset = physical_offset + size

    def append_all(self, entries: Sequence[int], size: int, now_ms: int) -> None:
        """Write the entries of many records in one step; there must be room.

        Args:
            entries: log position, size and tagsCode of each entry in sequence.
            size: bytes of all records together.

        Raises:
            OSError: see ``append``; none of the entries is there.
        """
        runs = (entries[first : first + _NUMBERS * _RUN] for first in range(0, len(entries), _NUMBERS * _RUN))
        encoded = (entry_run(len(run) // _NUMBERS).pack(*run) for run in runs)
        self.append_encoded(encoded, len(entries) // _NUMBERS, entries[0] + size, now_ms)

    def append_encoded(self, pieces: Iterable[bytes], count: int, end: int, now_ms: int) -> None:
        """Write encoded entries in one step; there must be room.

        Args:
            pieces: the bytes of ``count`` entries.
            end: log position behind the record of the last entry.

        Raises:
            OSError: see ``append``; none of the entries is there.
        """
        file = self.active
        assert file is not None
        at = (self.max_offset - self.active_index) * CQ_ENTRY_BYTES
        for data in pieces:
            while at + len(data) > file.size:
                part, data = data[: file.size - at], data[file.size - at :]
                if part:
                    (file.map or file.open_for_writing())[at : at + len(part)] = part
                    file.mtime_ms = now_ms
                file, at = self._file_after(file), 0
            (file.map or file.open_for_writing())[at : at + len(data)] = data
            file.mtime_ms = now_ms
            at += len(data)
        if REFUSED_WRITES.error is not None:
            self._refuse(count)
        if file is not self.active:
            self._use(file)
        self.advance(count, end, now_ms)

    def write_encoded(self, entries: bytes) -> None:
        """Write encoded entries behind the end; there must be room for all of them in the active file.

        Then call ``advance``, or ``take_back`` if ``REFUSED_WRITES`` has an error.
        """
        file = self.active
        assert file is not None
        at = (self.max_offset - self.active_index) * CQ_ENTRY_BYTES
        (file.map or file.open_for_writing())[at : at + len(entries)] = entries

    def advance(self, count: int, end: int, now_ms: int) -> None:
        """Count the entries behind the end as written, all in the active file or before.

        Args:
            end: log position behind the record of the last entry.
        """
        assert self.active is not None
        self.active.mtime_ms = now_ms
        self.max_offset += count
        self.max_physical_offset = end

    def take_back(self, count: int) -> None:
        """Clear entries behind the end; the next one needs ``make_room``, which raises an error."""
        at, end = self.max_offset * CQ_ENTRY_BYTES, (self.max_offset + count) * CQ_ENTRY_BYTES
        while at < end and (file := self.files.find(at)) is not None:
            stop = min(end, file.base + file.size)
            if file.map is not None:
                file.map[at - file.base : stop - file.base] = bytes(stop - at)
            file.refuse_writes()
            at = stop
        self.room_end = 0

    def _refuse(self, count: int) -> NoReturn:
        error = REFUSED_WRITES.error
        assert error is not None
        self.take_back(count)
        REFUSED_WRITES.error = None
        raise error

    def _file_after(self, full: MappedFile) -> MappedFile:
        file = self.files.find(full.base + full.size)
        assert file is not None
        return file

    def _next_file(self, full: MappedFile) -> MappedFile:
        file = self._file_after(full)
        self._use(file)
        return file

    def build(self, physical_offset: int, size: int, tags_code: int, queue_offset: int, now_ms: int) -> None:
        """Add the entry of a record found in the log, by the rules of docs/spec/store.md 4.4.

        Existing entries stay unchanged. As in RocketMQ, a record beyond the next index is still appended at
        the next index. Offset 0 begins the queue's next life: RocketMQ appends that entry to the former life,
        and loses the messages behind it.
        """
        if physical_offset + size <= self.max_physical_offset:
            return
        if queue_offset < self.max_offset:
            if queue_offset:
                return
            self.destroy()
        if not self.files.files and queue_offset:
            self._start_at(queue_offset, now_ms)
        if self.max_offset >= self.room_end:
            self.make_room(1, now_ms)
        self.append(physical_offset, size, tags_code, now_ms)

    def _start_at(self, queue_offset: int, now_ms: int) -> None:
        self.delete_former()
        position = queue_offset * CQ_ENTRY_BYTES
        file = self.files.append_file(position - position % self.files.file_bytes, now_ms)
        self._claim(file, position - file.base)
        file.open_map()[: position - file.base] = _FILLER * ((position - file.base) // CQ_ENTRY_BYTES)
        try:
            REFUSED_WRITES.check()
        except OSError:
            self.files.discard_last()
            raise
        self._use(file)
        self.min_offset = self.max_offset = queue_offset
        self.room_end = 0

    def skip_to(self, queue_offset: int, now_ms: int) -> None:
        """Make ``queue_offset`` the next offset; the offsets skipped have no message.

        Raises:
            OSError: the disk is full; the queue is consistent, but its next offset may be lower.
        """
        if not self.files.files:
            self._start_at(queue_offset, now_ms)
            return
        newest_end = self.max_physical_offset
        while self.max_offset < queue_offset:
            if self.max_offset >= self.room_end:
                self.make_room(1, now_ms)
            self.append(0, FILLER_SIZE, 0, now_ms)
            self.max_physical_offset = newest_end

    # Reading

    def entry(self, index: int) -> tuple[int, int, int] | None:
        """Return log position, size and tagsCode; None outside [min, max)."""
        if not self.min_offset <= index < self.max_offset:
            return None
        position = index * CQ_ENTRY_BYTES
        file = self.files.find(position)
        if file is None:
            return None
        return ENTRY.unpack_from(file.map or file.open_map(), position - file.base)

    def entries(self, index: int, max_bytes: int) -> bytes:
        """Return entries from ``index`` on, at most ``max_bytes``, all from one file."""
        position = index * CQ_ENTRY_BYTES
        file = self.files.find(position)
        if file is None:
            return b""
        start = position - file.base
        end = min(start + max_bytes, file.size, self.max_offset * CQ_ENTRY_BYTES - file.base)
        return (file.map or file.open_map())[start:end]

    # Recovery

    @property
    def life_begin(self) -> int:
        """Log position of the message at queue offset 0; 0 if it is not known, -1 without files."""
        if not self.files.files:
            return -1
        entry = self.slot(0) if self.files.files[0].base == 0 and self.max_offset else (0, 0, 0)
        return 0 if entry[1] == FILLER_SIZE else entry[0]

    @property
    def slots(self) -> range:
        """The queue offsets for which the files have room, written or not."""
        files = self.files.files
        first = files[0].base if files else 0
        end = files[-1].base + files[-1].size if files else 0
        return range(first // CQ_ENTRY_BYTES, end // CQ_ENTRY_BYTES)

    def slot(self, index: int) -> tuple[int, int, int]:
        """Return log position, size and tagsCode at a queue offset of ``slots``; zeros if never written."""
        position = index * CQ_ENTRY_BYTES
        file = self.files.find(position)
        assert file is not None
        return ENTRY.unpack_from(file.open_map(), position - file.base)

    def chunks(self, start: int, end: int) -> Iterator[bytes]:
        """Yield the entries of a range of ``slots``, many at a time."""
        at = start * CQ_ENTRY_BYTES
        while at < end * CQ_ENTRY_BYTES:
            file = self.files.find(at)
            assert file is not None
            chunk_end = min(at + _CHUNK_BYTES, end * CQ_ENTRY_BYTES, file.base + file.size)
            yield file.open_map()[at - file.base : chunk_end - file.base]
            at = chunk_end

    def file_end(self, index: int) -> int:
        """Return the queue offset behind the last entry of the file for ``index``."""
        entries = self.files.file_bytes // CQ_ENTRY_BYTES
        return index - index % entries + entries

    def keep_before(self, index: int) -> None:
        """Keep the entries before a queue offset of ``slots``, which is known; delete later files."""
        last = self.files.find((index - 1) * CQ_ENTRY_BYTES) or self.files.files[0]
        self._end_at(last, index - last.base // CQ_ENTRY_BYTES)

    def recover(self) -> None:
        """Find the last written entry after a clean stop; delete later files (docs/spec/store.md 9.2)."""
        files = self.files.files
        self._recover_from(max(0, len(files) - _FILES_CHECKED), _ANY_POSITION)
        self._flushed = (self._life, self.max_offset)

    def recover_before(self, log_end: int) -> None:
        """After a crash, keep only the entries of records before a log position, and delete later files.

        The disk may have lost any page of the later entries. An entry of which a part is lost can look valid,
        so the caller rebuilds all of them from the log.

        Args:
            log_end: log position before which log and queues are durable.
        """
        files = self.files.files
        number = len(files) - 1
        while number > 0 and not self._begins_before(files[number], log_end):
            number -= 1
        self._recover_from(max(number, 0), log_end)

    @staticmethod
    def _begins_before(file: MappedFile, log_end: int) -> bool:
        """True if a file's first entry is durable. Its position and size are in one sector of the disk."""
        physical_offset, size = _POSITION_AND_SIZE.unpack_from(file.open_map())
        return bool(0 < physical_offset < log_end and 0 < size < FILLER_SIZE)

    def _recover_from(self, number: int, log_end: int) -> None:
        files = self.files.files
        for file in files[number:]:
            count = self._count_valid(file, log_end)
            if count < file.size // CQ_ENTRY_BYTES:
                self._end_at(file, count)
                return
        if files:
            self._end_at(files[-1], files[-1].size // CQ_ENTRY_BYTES)

    @staticmethod
    def _count_valid(file: MappedFile, log_end: int) -> int:
        """Return the number of entries at the file's start that are in the log's order, before its end."""
        count = previous = 0
        mapping = file.open_map()
        for at in range(0, file.size, _CHUNK_BYTES):
            for physical_offset, size in _POSITION_AND_SIZE.iter_unpack(mapping[at : at + _CHUNK_BYTES]):
                if size <= 0 or not previous <= physical_offset < log_end:
                    return count
                if size != FILLER_SIZE:
                    previous = physical_offset + size
                count += 1
        return count

    def _end_at(self, last: MappedFile, count: int) -> None:
        files = self.files.files
        while files[-1] is not last:
            self.files.drop_last()
        self._use(last)
        self.max_offset = self.active_index + count
        self._flushed = (self._life, min(self._flushed_index, self.max_offset))
        self.room_end = 0
        last.allocated = 0
        self.files.clear_beyond(self.max_offset * CQ_ENTRY_BYTES)
        self.min_offset = min(self.min_offset, self.max_offset)
        self.max_physical_offset = self._newest_end()

    def _newest_end(self) -> int:
        """Return the log position behind the newest record, -1 if all entries are fillers."""
        for index in range(self.max_offset - 1, self.files.files[0].base // CQ_ENTRY_BYTES - 1, -1):
            position = index * CQ_ENTRY_BYTES
            file = self.files.find(position)
            assert file is not None
            physical_offset, size, _ = ENTRY.unpack_from(file.open_map(), position - file.base)
            if size != FILLER_SIZE:
                return int(physical_offset + size)
        return -1

    def truncate(self, log_end: int) -> None:
        """Drop the entries of records at or beyond ``log_end`` (docs/spec/store.md 9.5)."""
        files = self.files.files
        if self.max_physical_offset <= log_end or not files:
            return
        first = files[0].base // CQ_ENTRY_BYTES
        keep = self._first_entry_at(log_end, first)
        position = keep * CQ_ENTRY_BYTES
        # A queue whose oldest files have expired must not start over at 0, so its first file stays.
        if keep == first and first == 0:
            self.destroy()
            return
        last = self.files.find(position) if keep == first else self.files.find(position - 1)
        assert last is not None
        self._end_at(last, keep - last.base // CQ_ENTRY_BYTES)

    def destroy(self) -> None:
        """Delete every file; the queue starts over at 0.

        Raises:
            OSError: the disk fails; the queue has only the entries of the files that are left.
        """
        files = self.files.files
        try:
            while files:
                self.files.drop_last()
        except OSError:
            self._use(files[-1])
            self.max_offset = min(self.max_offset, (files[-1].base + files[-1].size) // CQ_ENTRY_BYTES)
            self.min_offset = min(self.min_offset, self.max_offset)
            self._flushed = (self._life, min(self._flushed_index, self.max_offset))
            self.room_end = 0
            raise
        self._begin_life()

    def start_over(self) -> None:
        """Begin a new life at offset 0. ``delete_former`` deletes the files of the life that ends."""
        self._former += [self.files.take_first() for _ in range(len(self.files.files))]
        self._begin_life()

    def _begin_life(self) -> None:
        self._life += 1
        self.active = None
        self.active_index = self.min_offset = self.max_offset = self.room_end = 0
        self.max_physical_offset = -1

    @property
    def former_files(self) -> list[DroppedFile]:
        """Return the files of earlier lives that are not deleted yet, in the order of deletion."""
        return self._former[::-1]

    def delete_former(self) -> None:
        """Delete the files of earlier lives. Raise OSError if the disk fails; call again."""
        for dropped in self.former_files:
            dropped.remove()
        self._former.clear()

    def close_files(self) -> bool:
        """Unmap the files, which takes a descriptor each; the next access maps one again.

        Returns:
            True if a file was mapped.
        """
        self.room_end = 0
        return self.files.close_files()

    def correct_min_offset(self, log_min: int) -> None:
        """Set ``min_offset`` to the first message whose record is in the log; max if there is none.

        This is RocketMQ 5's rule (ConsumeQueue#correctMinOffset). If no record is left, 4.9.4 keeps the old
        value, which a restart turns into 0 (docs/spec/store.md 11.3).
        """
        files = self.files.files
        first = files[0].base // CQ_ENTRY_BYTES if files else 0
        self.min_offset = self._first_entry_at(log_min, first)

    def expire(self, log_min: int, *, ends_idle: bool) -> bool:
        """Delete the oldest files whose records are all gone from the log, and correct ``min_offset``.

        Specification: docs/spec/store.md 11.3.

        The last file is never deleted.

        Args:
            ends_idle: set ``min_offset`` to ``max_offset`` if no record is left, as 5.x does; 4.9.4 keeps the
                old value.

        Returns:
            True if a file was deleted.

        Raises:
            OSError: the disk fails; files deleted so far stay deleted.
        """
        files = self.files.files
        count = len(files)
        while len(files) > 1 and files[0] is not self.active and self._last_position(files[0]) < log_min:
            self.files.drop_first()
        before = self.min_offset
        self.correct_min_offset(log_min)
        if not ends_idle and self.min_offset == self.max_offset:
            self.min_offset = before
        return len(files) < count

    @staticmethod
    def _last_position(file: MappedFile) -> int:
        return int(ENTRY.unpack_from(file.open_map(), file.size - CQ_ENTRY_BYTES)[0])

    def _first_entry_at(self, physical_offset: int, first: int) -> int:
        low, high = first, self.max_offset
        while low < high:
            middle = (low + high) // 2
            position = middle * CQ_ENTRY_BYTES
            file = self.files.find(position)
            assert file is not None
            at, size, _ = ENTRY.unpack_from(file.open_map(), position - file.base)
            if size == FILLER_SIZE or at < physical_offset:
                low = middle + 1
            else:
                high = middle
        return low

    def flush(self) -> None:
        """Make the entries written so far durable; may run on a worker thread. Raise OSError on failure."""
        life, end = self._life, self.max_offset
        start = self._flushed_index
        if end == start:
            return
        for file in list(self.files.files):
            if file.base < end * CQ_ENTRY_BYTES and file.base + file.size > start * CQ_ENTRY_BYTES:
                self._sync(file, start, end)
        self._flushed = (life, end)

    @property
    def _flushed_index(self) -> int:
        """Index before which all entries are durable. A flush of an earlier life counts for nothing."""
        life, index = self._flushed
        return index if life == self._life else 0

    def _sync(self, file: MappedFile, start: int, end: int) -> None:
        start = max(start * CQ_ENTRY_BYTES - file.base, 0)
        try:
            file.sync(self._disk, start, min(end * CQ_ENTRY_BYTES - file.base, file.size))
        except FileNotFoundError:
            # Retention or the deletion of the topic has deleted the file in the meantime.
            if file in self.files.files:
                raise
        file.save_mtime(self._disk)
