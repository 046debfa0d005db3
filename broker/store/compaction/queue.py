"""One queue of the compaction store: messages by queue offset, with gaps (docs/spec/store.md 14.2)."""

from __future__ import annotations

import logging
from bisect import bisect_left
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import Final, NamedTuple

from rewindmq.broker.store.compaction.file import CompactionEntry, CompactionFile, first_store_timestamp
from rewindmq.broker.store.config import CQ_ENTRY_BYTES, StoreConfig
from rewindmq.broker.store.consume_queue.offset_search import search_by_time
from rewindmq.broker.store.errors import StoreError
from rewindmq.broker.store.files.disk import Disk
from rewindmq.broker.store.files.mapped_file import (
    MappedFile,
    MmapCache,
    create_file,
    file_name,
    named_by_position,
)
from rewindmq.broker.store.model import Boundary, GetMessageStatus, GetResult, SearchMode
from rewindmq.protocol.limits import MAX_RESPONSE_BODY_BYTES
from rewindmq.protocol.message.record import BLANK_BYTES

_log = logging.getLogger(__name__)

_NEVER_TOO_OLD: Final = 0x7FFF_FFFF_FFFF_FFFF


class CompactionQueue:
    """A queue of a compaction topic, in files of fixed size; a compaction may leave gaps between them.

    Attributes:
        max_offset: lowest queue offset that the next message may have.
        seen_offset: messages of the ordinary queue below this offset need no copying.
    """

    def __init__(
        self,
        folders: tuple[Path, Path],
        last_compacted: int,
        config: StoreConfig,
        disk: Disk,
        pool: MmapCache,
    ) -> None:
        """
        Args:
            folders: the folder of the records, and the folder of the entries.
            last_compacted: queue offset up to which the queue was compacted, -1 for none.
        """
        self._log_folder, self._entry_folder = folders
        self._log_bytes = config.compaction_log_file_bytes
        self._entry_file_bytes = config.compaction_cq_file_bytes
        # Its limits of a read can change while the store is open.
        self._config = config
        self._disk = disk
        self._pool = pool
        self._files: list[CompactionFile] = []
        self._flushed: tuple[str, int] = ("", 0)
        self.max_offset = self.seen_offset = last_compacted + 1

    # Opening

    def load(self, *, durable_ms: int | None) -> None:
        """Find the files, and after a crash the end of the intact records.

        Args:
            durable_ms: store time, ms, up to which every message is durable here; None after a clean stop.

        Raises:
            StoreError: a stray file, one of another size, or one without its counterpart.
            OSError: the disk fails.
        """
        logs = self._find(self._log_folder, self._log_bytes, "compactionMappedFileSize")
        entries = self._find(self._entry_folder, self._entry_file_bytes, "compactionCqMappedFileSize")
        self._drop_unpaired(logs, entries, durable_ms)
        self._files = [CompactionFile(logs[base], entries[base], self._disk) for base in sorted(logs)]
        for file in self._files:
            file.count_entries()
        if durable_ms is not None:
            self._cut_damage(durable_ms)
        self.max_offset = max(self.max_offset, *(file.last_queue_offset + 1 for file in self._files), 0)
        self.seen_offset = self.max_offset

    def _drop_unpaired(
        self, logs: dict[int, MappedFile], entries: dict[int, MappedFile], durable_ms: int | None
    ) -> None:
        """Remove the files from the first unpaired one on, if a crash may have lost its counterpart."""
        unpaired = logs.keys() ^ entries.keys()
        if not unpaired:
            return
        lost = [base for base in logs.keys() | entries.keys() if base >= min(unpaired)]
        times = [first_store_timestamp(entries[base]) for base in lost if base in entries]
        if durable_ms is None or any(0 < time <= durable_ms for time in times):
            raise StoreError(f"{self._log_folder} and {self._entry_folder} must hold files of the same names")
        for base in sorted(lost, reverse=True):
            for files in (logs, entries):
                if base in files:
                    file = files.pop(base)
                    self._pool.release(file)
                    self._disk.remove(file.path)

    def _find(self, folder: Path, size: int, key: str) -> dict[int, MappedFile]:
        found: dict[int, MappedFile] = {}
        entries = named_by_position(self._disk, folder)
        for entry in entries:
            name = entry.path.name
            if int(name) % self._log_bytes:
                raise StoreError(
                    f"{entry.path} does not belong here: names are multiples of {self._log_bytes}, which"
                    " follows from compactionMappedFileSize"
                )
            if entry.size == 0 and entry is entries[-1]:
                self._disk.remove(entry.path)
                continue
            if entry.size != size:
                raise StoreError(
                    f"{entry.path} has {entry.size} bytes, but with this {key} it must have {size}"
                )
            mtime = self._disk.mtime_ms(entry.path)
            found[int(name)] = MappedFile(self._pool, entry.path, int(name), size, mtime)
        return found

    def _cut_damage(self, durable_ms: int) -> None:
        first = len(self._files) - 1
        while first > 0 and not 0 < first_store_timestamp(self._files[first].entries) <= durable_ms:
            first -= 1
        for number in range(max(first, 0), len(self._files)):
            file = self._files[number]
            is_followed = number + 1 < len(self._files)
            if file.cut_damage() or (is_followed and not file.is_sealed):
                _log.warning("%s cut behind its last intact message after a crash", file.log.path)
                while len(self._files) > number + 1:
                    self._drop_last()
                return

    def _drop_last(self) -> None:
        file = self._files.pop()
        for part in (file.log, file.entries):
            self._pool.release(part)
            self._disk.remove(part.path)

    # Writing

    def append(self, record: bytes, tags_code: int, store_timestamp: int, queue_offset: int) -> None:
        """Add a message; ignore a message below ``max_offset``, which was added or removed before.

        Raises:
            OSError: the disk is full; nothing was added.
        """
        if queue_offset < self.max_offset:
            return
        if len(record) + BLANK_BYTES > self._log_bytes:
            _log.error("message %d of %s does not fit into a file, skipped", queue_offset, self._log_folder)
            return
        if not self._files or not self._files[-1].has_room(len(record)):
            self._roll()
        self._files[-1].append(record, tags_code, store_timestamp, queue_offset)
        self.max_offset = queue_offset + 1

    def _roll(self) -> None:
        base = self._files[-1].log.base + self._log_bytes if self._files else 0
        log = MappedFile(self._pool, self._log_folder / file_name(base), base, self._log_bytes, 0)
        entries = MappedFile(
            self._pool, self._entry_folder / file_name(base), base, self._entry_file_bytes, 0
        )
        create_file(self._disk, log.path, log.size)
        try:
            create_file(self._disk, entries.path, entries.size)
        except OSError:
            with suppress(OSError):
                self._disk.remove(log.path)
            raise
        if self._files:
            self._files[-1].seal()
        self._files.append(CompactionFile(log, entries, self._disk))

    def close_files(self) -> None:
        """Unmap the files; the next access maps them again."""
        for file in self._files:
            self._pool.release(file.log)
            self._pool.release(file.entries)

    def flush(self) -> None:
        """Make everything written durable; may run on a worker thread. Raise OSError on a disk error."""
        files = list(self._files)
        if not files:
            return
        name, count = self._flushed
        end = (files[-1].log.path.name, files[-1].count)
        for file in files:
            if file.log.path.name > name or (file.log.path.name == name and file.count != count):
                file.flush()
        self._flushed = end

    # Reading

    @property
    def min_offset(self) -> int:
        """Queue offset of the first message; ``max_offset`` if there is none."""
        for file in self._files:
            if file.count:
                return file.entry(0).queue_offset
        return self.max_offset

    def _file_with(self, queue_offset: int) -> CompactionFile | None:
        """Return the file with the first message at ``queue_offset`` or later."""
        files = [file for file in self._files if file.count]
        number = bisect_left(files, queue_offset, key=lambda file: file.last_queue_offset)
        return files[number] if number < len(files) else None

    def read(self, offset: int, max_count: int) -> GetResult:
        """Return at most ``max_count`` messages from the first at ``offset`` or later, from one file.

        As 5.3.3 ``CompactionLog#getMessage``, this does not filter tags and never returns "too small".
        Beyond the last message of a compacted queue, the next offset is the queue's max.
        """
        minimum, maximum = self.min_offset, self.max_offset
        if maximum == 0:
            return GetResult(GetMessageStatus.NO_MESSAGE_IN_QUEUE, 0, minimum, maximum)
        if offset == maximum:
            return GetResult(GetMessageStatus.OFFSET_OVERFLOW_ONE, offset, minimum, maximum)
        if offset > maximum:
            goes_to = minimum if minimum == 0 else maximum
            return GetResult(GetMessageStatus.OFFSET_OVERFLOW_BADLY, goes_to, minimum, maximum)
        file = self._file_with(offset)
        if file is None:
            return GetResult(GetMessageStatus.NO_MATCHED_MESSAGE, maximum, minimum, maximum)
        return self._collect(file, offset, max_count, minimum, maximum)

    def _collect(
        self, file: CompactionFile, offset: int, max_count: int, minimum: int, maximum: int
    ) -> GetResult:
        records: list[bytes] = []
        total = 0
        status, next_offset = GetMessageStatus.NO_MATCHED_MESSAGE, offset
        limit = min(max_count, self._config.max_transfer_count_on_message_in_memory)
        max_bytes = min(self._config.max_transfer_bytes_on_message_in_memory, MAX_RESPONSE_BODY_BYTES)
        for number in range(file.first_at_or_after(offset), file.count):
            entry = file.entry(number)
            if records and (len(records) >= limit or total + entry.size > max_bytes):
                break
            next_offset = entry.queue_offset + 1
            record = file.record(entry)
            if record is None:
                if not records:
                    status = GetMessageStatus.MESSAGE_WAS_REMOVING
                continue
            status = GetMessageStatus.FOUND
            records.append(record)
            total += entry.size
        return GetResult(status, next_offset, minimum, maximum, b"".join(records), len(records))

    def store_time(self, offset: int) -> int:
        """Return the store timestamp of the message at ``offset``, ms; -1 if there is none."""
        file = self._file_with(offset)
        if file is None:
            return -1
        entry = file.entry(file.first_at_or_after(offset))
        return entry.store_timestamp if entry.queue_offset == offset else -1

    def search(self, timestamp: int, boundary: Boundary, mode: SearchMode) -> int:
        """Return the queue offset for ``timestamp`` (ms), by the rules of ``mode``; max if empty."""
        timeline = CompactionTimeline(self._files)
        place = search_by_time(timeline, timeline, timestamp, boundary, mode)
        return timeline.queue_offset(place) if place < timeline.max_offset else self.max_offset


class _WholeQueue(NamedTuple):
    """A ``CompactionTimeline`` in the form of one consume-queue file, for ``offset_search``."""

    base: int
    size: int
    mtime_ms: int


class _Files(NamedTuple):
    files: tuple[_WholeQueue, ...]


class CompactionTimeline:
    """Numbers a queue's messages without gaps, so that ``offset_search`` can use it as queue and as log."""

    min_offset: Final = 0

    def __init__(self, files: list[CompactionFile]) -> None:
        self._files = [file for file in files if file.count]
        self._ends = list(accumulate(file.count for file in self._files))
        self.max_offset = self._ends[-1] if self._ends else 0
        self.files = _Files((_WholeQueue(0, self.max_offset * CQ_ENTRY_BYTES, _NEVER_TOO_OLD),))

    def _entry(self, place: int) -> CompactionEntry:
        number = bisect_left(self._ends, place + 1)
        return self._files[number].entry(place - self._ends[number] + self._files[number].count)

    def entry(self, index: int) -> tuple[int, int, int]:
        """Return the index as the entry's log position: ``store_time`` takes it back."""
        return index, 1, 0

    def store_time(self, offset: int) -> int:
        """Return the store timestamp of the message at an index, ms."""
        return self._entry(offset).store_timestamp

    def queue_offset(self, place: int) -> int:
        """Return the queue offset of the message at an index."""
        return self._entry(place).queue_offset
