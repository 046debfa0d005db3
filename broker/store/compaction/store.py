"""Compaction topics, which keep only the newest message of each key (5.3.3 CompactionStore;
docs/spec/store.md 14).

Pulls, offset queries and searches by time of these topics use only this store. Messages go to the commit log
and the ordinary consume queue like all others, and are copied from there: each message right after its put,
and at a start all missing messages, when the topics become known. A compaction leaves gaps instead of
changing queue offsets, so stored group offsets stay valid. If the ordinary queue ends before the compacted
queue (in a compacted store without its commit log), the ordinary queue continues where the compacted queue
ends.

The broker itself never compacts; the pipeline does, offline. The broker respects a ``position-checkpoint`` of
the pipeline or of a RocketMQ broker: it does not copy messages up to that queue offset again, even if their
keys' newest messages are missing.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

from rewindmq.broker.store.compaction.queue import CompactionQueue
from rewindmq.broker.store.config import StoreConfig
from rewindmq.broker.store.consume_queue.queue import FILLER_SIZE, ConsumeQueue
from rewindmq.broker.store.consume_queue.table import ConsumeQueueTable
from rewindmq.broker.store.errors import StoreError, cause_of
from rewindmq.broker.store.files.disk import Disk
from rewindmq.broker.store.files.mapped_file import MmapCache
from rewindmq.broker.store.layout.compaction import CQ_FOLDER, LOG_FOLDER, POSITION_FILE
from rewindmq.broker.store.layout.queue_path import names_a_queue, queue_path
from rewindmq.broker.store.log.commit_log import CommitLog
from rewindmq.protocol.codec import fastjson
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.message.properties import KEYS, find_property

_log = logging.getLogger(__name__)

_POSITIONS: Final = "queueOffsetMap"


class CompactionStore:
    """The queues of compaction topics.

    Attributes:
        topics: names of the compaction topics; other topics are ignored.
    """

    def __init__(
        self,
        folder: Path,
        config: StoreConfig,
        log: CommitLog,
        queues: ConsumeQueueTable,
        disk: Disk,
        pool: MmapCache,
    ) -> None:
        self._folder = folder
        self._config = config
        self._log = log
        self._ordinary = queues
        self._disk = disk
        self._pool = pool
        self._queues: dict[tuple[str, int], CompactionQueue] = {}
        self._positions: dict[str, int] = {}
        self.topics: frozenset[str] = frozenset()
        self._is_failing = False

    def load(self, *, durable_ms: int | None) -> None:
        """Find every queue on disk.

        Args:
            durable_ms: see ``CompactionQueue.load``.

        Raises:
            StoreError: a file is stray, has the wrong size, or lacks its counterpart.
            OSError: the disk fails.
        """
        self._positions = self._read_positions()
        for folder in (self._folder / LOG_FOLDER, self._folder / CQ_FOLDER):
            for topic in self._disk.list_folder(folder):
                for queue in self._disk.list_folder(topic.path) if topic.is_folder else ():
                    name = queue.path.name
                    key = (topic.path.name, int(name) if name.isascii() and name.isdigit() else -1)
                    if not queue.is_file and names_a_queue(*key) and key not in self._queues:
                        self._queues[key] = self._new(*key)
                        self._queues[key].load(durable_ms=durable_ms)

    def _read_positions(self) -> dict[str, int]:
        path = self._folder / POSITION_FILE
        data = self._disk.read(path) or b""
        if not data.strip():
            return {}
        try:
            content: Any = fastjson.loads(data)
            return {str(name): int(offset) for name, offset in content[_POSITIONS].items()}
        except (RewindMQError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise StoreError(f"cannot read {path}: {error}") from None

    def _new(self, topic: str, queue_id: int) -> CompactionQueue:
        path = queue_path(topic, queue_id)
        folders = (self._folder / LOG_FOLDER / path, self._folder / CQ_FOLDER / path)
        last_compacted = self._positions.get(f"{topic}_{queue_id}", -1)
        return CompactionQueue(folders, last_compacted, self._config, self._disk, self._pool)

    def set_topics(self, topics: Collection[str]) -> None:
        """Set the compaction topics; copy missing messages from the commit log."""
        new = frozenset(topics) - self.topics
        self.topics = frozenset(topics)
        for queue in self._ordinary:
            if queue.topic in new:
                self.find(queue.topic, queue.queue_id)

    def find(self, topic: str, queue_id: int) -> CompactionQueue | None:
        """Return a queue with all its messages; None if it never had a message."""
        found = self._queues.get((topic, queue_id))
        ordinary = self._ordinary.get((topic, queue_id))
        if ordinary is None:
            return found
        if found is None:
            if not ordinary.max_offset:
                return None
            found = self._queues[topic, queue_id] = self._new(topic, queue_id)
        if found.seen_offset < ordinary.max_offset:
            try:
                self._copy(ordinary, found)
                self._is_failing = False
            except OSError as error:
                # The commit log has the messages; the next call tries again.
                if not self._is_failing:
                    _log.error("%s lacks messages: %s", self._folder, cause_of(error))
                self._is_failing = True
        return found

    def prepare_put(self, topic: str, queue_id: int, now_ms: int) -> None:
        """Move the ordinary queue's end to the compacted queue's end. Raise OSError if the disk is full."""
        found = self._queues.get((topic, queue_id))
        if found is not None:
            ordinary = self._ordinary.get((topic, queue_id)) or self._ordinary.create(topic, queue_id)
            if ordinary is not None and ordinary.max_offset < found.max_offset:
                ordinary.skip_to(found.max_offset, now_ms)

    def _copy(self, ordinary: ConsumeQueue, target: CompactionQueue) -> None:
        log = self._log
        index = max(target.seen_offset, ordinary.min_offset)
        while index < ordinary.max_offset:
            entry = ordinary.entry(index)
            record = None if entry is None or entry[1] == FILLER_SIZE else log.record_at(entry[0])
            if entry is not None and record is not None and has_keys(log.properties_of(record)):
                data = log.read(record.physical_offset, record.size)
                assert data is not None
                target.append(data, entry[2], record.store_timestamp, record.queue_offset)
            index += 1
            target.seen_offset = index

    def close_files(self, topic: str, queue_id: int) -> None:
        """Unmap the files of a queue; do nothing if there is none."""
        found = self._queues.get((topic, queue_id))
        if found is not None:
            found.close_files()

    def flush(self) -> None:
        """Make everything written durable; may run on a worker thread. Raise OSError on a disk error."""
        for queue in list(self._queues.values()):
            queue.flush()


def has_keys(properties: bytes) -> bool:
    """Return True if a properties text has a key; compaction topics require one."""
    return bool((find_property(properties.decode("utf-8", "replace"), KEYS) or "").strip())
