"""The key index of a store: which messages of a topic were sent under a key (4.9.4 IndexService).

RocketMQ indexes a message a moment after it is stored. RewindMQ indexes on demand: a put does not touch the
index, so sends cost the same with and without it. A query first brings the index up to date with
``catch_up``, in steps of any size; a broker does one step per turn of its event loop. The commit log is the
only source: reading continues behind the last message of the newest file, also after a restart. A store
without queries gets no ``index/`` folder. A clean stop completes an existing index if little is missing,
because a RocketMQ broker that opens the store next does not index older messages; RewindMQ would continue.

Other differences from 4.9.4: a restart does not index the last message again. Files that refer to messages
outside the log (it was cut, or belongs to another store) are dropped, not only files that a crash may have
damaged. A file of the wrong size, which RocketMQ resizes to match its settings, is an error at open.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Generator
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from rewindmq.broker.store.config import StoreConfig
from rewindmq.broker.store.errors import StoreError
from rewindmq.broker.store.files.disk import Disk
from rewindmq.broker.store.files.mapped_file import DroppedFile, MmapCache, create_file
from rewindmq.broker.store.index.file import IndexFile
from rewindmq.broker.store.layout.index import MAX_MSGS_NUM_BATCH, file_bytes, index_keys, key_hash
from rewindmq.broker.store.log.commit_log import CommitLog
from rewindmq.broker.store.log.record_check import StoredRecord
from rewindmq.broker.store.recovery.checkpoint import StoreCheckpoint
from rewindmq.protocol.message.properties import KEYS, UNIQ_KEY, find_property
from rewindmq.protocol.message.sysflag import TRANSACTION_MASK, MessageSysFlag

_log = logging.getLogger(__name__)

_NAME_DIGITS: Final = 17
_ROLLBACK: Final = int(MessageSysFlag.TRANSACTION_ROLLBACK)


class IndexHits(NamedTuple):
    """The index entries of a key.

    Attributes:
        physical_offsets: log positions, unordered; a position indexed twice appears twice.
        last_update_timestamp: store time of the newest message in the index, ms; 0 without an index.
        last_update_phy_offset: its log position; 0 without an index.
    """

    physical_offsets: list[int]
    last_update_timestamp: int
    last_update_phy_offset: int


class IndexService:
    """All index files of a store, oldest first, and the log position up to which they are complete."""

    def __init__(
        self,
        folder: Path,
        config: StoreConfig,
        log: CommitLog,
        disk: Disk,
        pool: MmapCache,
        now_ms: Callable[[], int],
    ) -> None:
        self._folder = folder
        self._is_kept = config.message_index_enable
        self._slots = config.max_hash_slot_num
        self._entries = config.max_index_num
        self._log = log
        self._disk = disk
        self._pool = pool
        self._now_ms = now_ms
        self._files: list[IndexFile] = []
        # Everything in the log before this position is in the index.
        self._position = 0
        self._flushed_position = 0
        # Number of keys of the record at that position that are already indexed.
        self._posted = 0
        # True if every message with the newest indexed store time is in the index.
        self._is_settled = False
        # True if a flush failed: what of the unflushed files is on disk is unknown.
        self._is_suspect = False

    # Opening

    def load(self, *, clean: bool, checkpoint: StoreCheckpoint) -> None:
        """Find the files and drop unreliable ones. Call after the log is recovered.

        Raises:
            StoreError: a file of another size than the settings say.
            OSError: the disk fails.
        """
        is_sound = True
        for entry in self._disk.list_folder(self._folder):
            name = entry.path.name
            if not entry.is_file or not (name.isascii() and name.isdigit()):
                _log.warning("%s is not an index file and is ignored", entry.path)
            elif entry.size == 0:
                # Left by a crash between creating and sizing the file.
                self._disk.remove(entry.path)
            elif entry.size != (size := file_bytes(self._slots, self._entries)):
                raise StoreError(
                    f"{entry.path} has {entry.size} bytes, but with maxHashSlotNum {self._slots} and"
                    f" maxIndexNum {self._entries} an index file has {size}: use the settings it was"
                    f" written with, or remove {self._folder}; it is rebuilt from the commit log"
                )
            else:
                file = IndexFile(entry.path, self._slots, self._entries, self._disk, self._pool)
                is_sound = file.read_header() and is_sound
                self._files.append(file)
                if file.is_empty:
                    self._drop_last()
                elif not clean and file.end_timestamp > checkpoint.index_msg_timestamp:
                    _log.warning("index file %s dropped: a crash may have lost entries of it", entry.path)
                    self._drop_last()
        if not is_sound:
            _log.error("%s dropped: a header in it is damaged", self._folder)
            while self._files:
                self._drop_last()
        while self._files and not self._belongs_to_log(self._files[-1]):
            _log.warning(
                "index file %s dropped: the commit log does not hold its messages",
                self._files[-1].path,
            )
            self._drop_last()
        while not clean and self._files and self._files[-1].has_newer_slots():
            _log.warning("index file %s dropped: a crash has damaged its slots", self._files[-1].path)
            self._drop_last()
        self._drop_before(self._log.min_offset)
        self._find_end()
        self._settle()

    def _drop_last(self) -> None:
        self._files.pop().remove()

    def _belongs_to_log(self, file: IndexFile) -> bool:
        """Return True if the last message of a file is in the log, or older than the log."""
        if file.end_phy_offset < self._log.min_offset:
            return True
        record = self._log.record_at(file.end_phy_offset)
        return record is not None and record.store_timestamp == file.end_timestamp

    def _drop_before(self, position: int) -> None:
        """Drop files that end before a log position, except the newest (docs/spec/store.md 5.6)."""
        while len(self._files) > 1 and self._files[0].end_phy_offset < position:
            self._files.pop(0).remove()

    def take_expired(self) -> list[DroppedFile]:
        """Remove and return the files of deleted messages, except files that a flush may use."""
        position = min(self._log.min_offset, self._flushed_position)
        taken = []
        while len(self._files) > 1 and self._files[0].end_phy_offset < position:
            taken.append(self._files.pop(0).take())
        return taken

    def drop_suspect(self) -> None:
        """Drop the files that a failed flush left in doubt; ``catch_up`` makes them again from the log.

        Raises:
            OSError: the disk fails; call again.
        """
        if not self._is_suspect:
            return
        while self._files and self._files[-1].end_phy_offset >= self._flushed_position:
            self._files[-1].remove()
            self._files.pop()
        self._posted = 0
        self._find_end()
        self._settle()
        self._is_suspect = False

    def _find_end(self) -> None:
        """Find the log position from which to continue."""
        self._position = self._log.min_offset
        newest = self._files[-1] if self._files else None
        if newest is not None and newest.end_phy_offset >= self._position:
            record = self._log.record_at(newest.end_phy_offset)
            assert record is not None
            posted = newest.entries_of_last()
            if newest.is_full and posted < len(self._keys_of(record)):
                # The message's other keys were in the next file, which is gone.
                self._position, self._posted = record.physical_offset, posted
            else:
                self._position = record.physical_offset + record.size
        self._flushed_position = self._position

    # Writing

    def catch_up(self, until: int, max_records: int) -> bool:
        """Index messages that are missing, at most ``max_records``.

        Args:
            until: a log position; messages that begin there or later may be left to the next call.

        Returns:
            True if every message before ``until`` is in the index.

        Raises:
            OSError: the disk is full; the entries written so far remain.
        """
        if not self._is_kept:
            return True
        self._position = max(self._position, self._log.min_offset)
        try:
            self._post_messages(until, max_records)
        finally:
            self._settle()
        return self._position >= until

    def _post_messages(self, until: int, max_records: int) -> None:
        for _ in range(max_records):
            record = self._log.next_record(self._position) if self._position < until else None
            if record is None:
                # The bytes up to ``until`` contain no further messages.
                self._position = max(self._position, until)
                return
            self._post(record)
            self._position = record.physical_offset + record.size

    def _settle(self) -> None:
        """Update whether another message with the newest entry's store time may follow."""
        following = self._log.next_record(self._position)
        timestamp = self._files[-1].end_timestamp if self._files else 0
        since = self._now_ms() if following is None else following.store_timestamp
        self._is_settled = since > timestamp

    def _post(self, record: StoredRecord) -> None:
        topic = record.topic.decode("utf-8", "replace")
        for key in self._keys_of(record)[self._posted :]:
            self._writable_file().put(key_hash(topic, key), record.physical_offset, record.store_timestamp)
            self._posted += 1
        self._posted = 0

    def _keys_of(self, record: StoredRecord) -> list[str]:
        if record.sys_flag & TRANSACTION_MASK == _ROLLBACK:
            return []
        properties = self._log.properties_of(record).decode("utf-8", "replace")
        return list(index_keys(find_property(properties, UNIQ_KEY), find_property(properties, KEYS)))

    def _writable_file(self) -> IndexFile:
        if self._files and not self._files[-1].is_full:
            return self._files[-1]
        path = self._folder / self._next_name()
        create_file(self._disk, path, file_bytes(self._slots, self._entries))
        file = IndexFile(path, self._slots, self._entries, self._disk, self._pool)
        if self._files:
            file.begin_after(self._files[-1])
        self._files.append(file)
        return file

    def _next_name(self) -> str:
        """Return the creation time in local time, always after the name of the newest file."""
        now = datetime.fromtimestamp(self._now_ms() / 1_000).astimezone()
        name = int(f"{now:%Y%m%d%H%M%S}{now.microsecond // 1_000:03d}")
        if self._files:
            name = max(name, int(self._files[-1].path.name) + 1)
        return f"{name:0{_NAME_DIGITS}d}"

    # Reading

    def query(
        self, topic: str, key: str, max_count: int, begin: int, end: int
    ) -> Generator[None, None, IndexHits]:
        """Return the indexed messages under ``key`` with a store time in [begin, end] ms.

        Yields after about 1 ms of work.

        An entry holds its time in whole seconds since its file's first entry: a message stored in the second
        of ``begin`` can be missed. Messages under other keys with the same hash are included.

        Args:
            max_count: upper limit, capped at 64; the newest messages are returned.
        """
        max_count = min(max_count, MAX_MSGS_NUM_BATCH)
        found: list[int] = []
        files = list(self._files)
        if not files:
            return IndexHits(found, 0, 0)
        wanted = key_hash(topic, key)
        for file in reversed(files):
            if file.overlaps(begin, end):
                found += yield from file.select(wanted, max_count - len(found), begin, end)
            if file.begin_timestamp < begin or len(found) >= max_count:
                break
        newest = files[-1]
        return IndexHits(found, newest.end_timestamp, newest.end_phy_offset)

    def paths(self) -> list[tuple[Path, bool]]:
        """Return the path of each file, and True if the file is full: then it is never written again."""
        return [(file.path, file.is_full) for file in self._files]

    # Durability

    @property
    def is_present(self) -> bool:
        """True if there is any index file."""
        return bool(self._files)

    def flush(self) -> int:
        """Make the files durable; may run on a worker thread.

        Returns:
            The store time, ms, up to which every message is in files that survive a crash.

        Raises:
            OSError: the disk fails; it does so until ``drop_suspect`` is called.
        """
        if self._is_suspect:
            raise OSError(errno.EIO, "not flushed completely", str(self._folder))
        position, files = self._position, list(self._files)
        if not files:
            return 0
        timestamp = files[-1].end_timestamp
        if position > self._flushed_position:
            for file in files:
                if file.end_phy_offset >= self._flushed_position:
                    self._flush_file(file)
            self._flushed_position = position
        # A crash could lose entries of later messages that have the same store time.
        is_settled = self._is_settled or (position >= self._log.max_offset and self._now_ms() > timestamp)
        return timestamp if is_settled else timestamp - 1

    def _flush_file(self, file: IndexFile) -> None:
        try:
            file.flush()
        except OSError:
            self._is_suspect = True
            raise
