"""The key index of a store: which messages of a topic were sent under a key (4.9.4 IndexService).

RocketMQ posts a message a moment after it was stored. Here the index is written behind: nothing is done when
a message is put, so that sends cost what they cost without it. Whoever queries first brings the index up to
date with ``catch_up``, in steps as large as it likes; a broker does one step per turn of its event loop. The
log is the only source: what the newest file says of its last message is where reading goes on, also after a
restart. A store that is never asked gets no ``index/`` folder. On a clean stop an index that is there is
brought up to date where that is cheap, for a broker of RocketMQ that may open the store next and would not
look back; our own would go on wherever it ended.

Differs from 4.9.4 besides: the last message of an index is not posted again after a restart; files that tell
of messages the log does not hold (it was cut, or is another store's) are dropped, not only those that a crash
may have spoiled; and a file of the wrong size, which RocketMQ extends or cuts to what its settings say, is
refused when the store is opened.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from rewindmq.broker.store.checkpoint import StoreCheckpoint
from rewindmq.broker.store.commit_log import CommitLog
from rewindmq.broker.store.config import StoreConfig
from rewindmq.broker.store.disk import Disk
from rewindmq.broker.store.errors import StoreError
from rewindmq.broker.store.index_file import IndexFile
from rewindmq.broker.store.index_layout import MAX_MSGS_NUM_BATCH, file_bytes, index_keys, key_hash
from rewindmq.broker.store.mapped_file import MapPool
from rewindmq.broker.store.record_check import StoredRecord
from rewindmq.protocol.properties import KEYS, UNIQ_KEY, find_property
from rewindmq.protocol.sysflag import TRANSACTION_MASK, MessageSysFlag

_log = logging.getLogger(__name__)

_NAME_DIGITS: Final = 17
_ROLLBACK: Final = int(MessageSysFlag.TRANSACTION_ROLLBACK)


class IndexHits(NamedTuple):
    """What the index knows of a key.

    Attributes:
        physical_offsets: log positions, in no order, each as often as it was posted.
        last_update_timestamp: store time of the newest message in the index, ms; 0 without an index.
        last_update_phy_offset: its log position; 0 without an index.
    """

    physical_offsets: list[int]
    last_update_timestamp: int
    last_update_phy_offset: int


class IndexService:
    """All index files of a store, oldest first, and where in the log the newest one ends."""

    def __init__(
        self,
        folder: Path,
        config: StoreConfig,
        log: CommitLog,
        disk: Disk,
        pool: MapPool,
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
        # Keys of the record at that position that are in it nevertheless.
        self._posted = 0
        # Whether every message of the newest indexed one's millisecond is in the index.
        self._is_settled = False

    # Opening

    def load(self, *, clean: bool, checkpoint: StoreCheckpoint) -> None:
        """Find the files and drop those that cannot be trusted; after the log was recovered.

        Raises:
            StoreError: a file of another size than the settings say.
            OSError: the disk refuses.
        """
        is_sound = True
        for entry in self._disk.list_folder(self._folder):
            name = entry.path.name
            if not entry.is_file or not (name.isascii() and name.isdigit()):
                _log.warning("%s is no index file, it is passed over", entry.path)
            elif entry.size == 0:
                # What a crash between creating and sizing a file leaves.
                self._disk.remove(entry.path)
            elif entry.size != (size := file_bytes(self._slots, self._entries)):
                raise StoreError(
                    f"{entry.path} has {entry.size} bytes, but with maxHashSlotNum {self._slots} and"
                    f" maxIndexNum {self._entries} an index file has {size}: set what it was written with, or"
                    f" remove {self._folder}, it is made again from the commit log"
                )
            else:
                file = IndexFile(entry.path, self._slots, self._entries, self._disk, self._pool)
                is_sound = file.read_header() and is_sound
                self._files.append(file)
                if file.is_empty:
                    self._drop_last()
                elif not clean and file.end_timestamp > checkpoint.index_msg_timestamp:
                    _log.warning("index file %s dropped: it may lack what a crash lost", entry.path)
                    self._drop_last()
        if not is_sound:
            _log.error("%s dropped: a header in it is damaged", self._folder)
            while self._files:
                self._drop_last()
        while self._files and not self._belongs_to_log(self._files[-1]):
            _log.warning(
                "index file %s dropped: the commit log does not hold the messages it tells of",
                self._files[-1].path,
            )
            self._drop_last()
        self._drop_before(self._log.min_offset)
        self._find_end()
        self._settle()

    def _drop_last(self) -> None:
        self._files.pop().remove()

    def _belongs_to_log(self, file: IndexFile) -> bool:
        """Whether the last message of a file is in the log, or older than the log."""
        if file.end_phy_offset < self._log.min_offset:
            return True
        record = self._log.record_at(file.end_phy_offset)
        return record is not None and record.store_timestamp == file.end_timestamp

    def _drop_before(self, position: int) -> None:
        """Files that end before a log position; the newest one stays (docs/spec/store.md 5.6)."""
        while len(self._files) > 1 and self._files[0].end_phy_offset < position:
            self._files.pop(0).remove()

    def drop_expired(self) -> None:
        """Drop files whose messages are all gone; those a flush may be at stay. OSError: the disk refuses."""
        self._drop_before(min(self._log.min_offset, self._flushed_position))

    def _find_end(self) -> None:
        """See where in the log to go on."""
        self._position = self._log.min_offset
        newest = self._files[-1] if self._files else None
        if newest is not None and newest.end_phy_offset >= self._position:
            record = self._log.record_at(newest.end_phy_offset)
            assert record is not None
            posted = newest.entries_of_last()
            if newest.is_full and posted < len(self._keys_of(record)):
                # The others were in the next file, which is gone.
                self._position, self._posted = record.physical_offset, posted
            else:
                self._position = record.physical_offset + record.size
        self._flushed_position = self._position

    # Writing

    def catch_up(self, until: int, max_records: int) -> bool:
        """Post the messages that the index lacks, at most ``max_records`` of them.

        Args:
            until: a log position; messages that begin there or later may stay for the next time.

        Returns:
            Whether all before ``until`` is in the index.

        Raises:
            OSError: the disk gives no room; what was posted stays.
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
                # What is left before it, if anything, is no message.
                self._position = max(self._position, until)
                return
            self._post(record)
            self._position = record.physical_offset + record.size

    def _settle(self) -> None:
        """See whether another message of the newest entry's millisecond may follow."""
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
        self._disk.create(path, file_bytes(self._slots, self._entries))
        file = IndexFile(path, self._slots, self._entries, self._disk, self._pool)
        if self._files:
            file.begin_after(self._files[-1])
        self._files.append(file)
        return file

    def _next_name(self) -> str:
        """The creation time in local time, but never at or before the name of the newest file."""
        now = datetime.fromtimestamp(self._now_ms() / 1_000).astimezone()
        name = int(f"{now:%Y%m%d%H%M%S}{now.microsecond // 1_000:03d}")
        if self._files:
            name = max(name, int(self._files[-1].path.name) + 1)
        return f"{name:0{_NAME_DIGITS}d}"

    # Reading

    def query(self, topic: str, key: str, max_count: int, begin: int, end: int) -> IndexHits:
        """Positions of messages under ``key`` with a store time in [begin, end] ms, as far as the index goes.

        An entry knows its time in whole seconds since its file's first: a message stored in the second of
        ``begin`` can be missed. Other keys of the same hash come along.

        Args:
            max_count: at most so many, and at most 64; the newest ones.
        """
        max_count = min(max_count, MAX_MSGS_NUM_BATCH)
        found: list[int] = []
        if not self._files:
            return IndexHits(found, 0, 0)
        wanted = key_hash(topic, key)
        for file in reversed(self._files):
            if file.overlaps(begin, end):
                found += file.select(wanted, max_count - len(found), begin, end)
            if file.begin_timestamp < begin or len(found) >= max_count:
                break
        newest = self._files[-1]
        return IndexHits(found, newest.end_timestamp, newest.end_phy_offset)

    # Durability

    @property
    def is_present(self) -> bool:
        """Whether there is any index file."""
        return bool(self._files)

    def flush(self) -> int:
        """Make the files durable; may run on a worker thread.

        Returns:
            The store time, ms, up to which every message is in files that survive a crash.

        Raises:
            OSError: the disk refuses.
        """
        position, files = self._position, list(self._files)
        if not files:
            return 0
        timestamp = files[-1].end_timestamp
        if position > self._flushed_position:
            for file in files:
                if file.end_phy_offset >= self._flushed_position:
                    file.flush()
            self._flushed_position = position
        # A crash could lose the entries of messages that are yet to come with the same time.
        is_settled = self._is_settled or (position >= self._log.max_offset and self._now_ms() > timestamp)
        return timestamp if is_settled else timestamp - 1
