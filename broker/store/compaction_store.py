"""Topics of which only the newest message of each key matters (5.3.3 CompactionStore; docs/spec/store.md 14).

They are read from here alone: pulls, bounds, searches by time. Messages go to the commit log and the ordinary
consume queue as all others do, and are copied from there: right after each put, and when the topics become
known at a start, whatever is missing. Their queue offsets stay what they were, so a compaction leaves gaps
and no group's position changes its meaning; should the ordinary queue be behind (a compacted store without
its commit log), it goes on where the compacted one ends.

The broker itself never compacts: the pipeline does, offline. What it, or a broker of RocketMQ, says in
``position-checkpoint`` is obeyed: messages up to that queue offset are not copied again, though their keys'
last ones may be gone.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

from rewindmq.broker.store.commit_log import CommitLog
from rewindmq.broker.store.compaction_layout import CQ_FOLDER, LOG_FOLDER, POSITION_FILE
from rewindmq.broker.store.compaction_queue import CompactionQueue
from rewindmq.broker.store.config import StoreConfig
from rewindmq.broker.store.consume_queue import FILLER_SIZE, ConsumeQueue
from rewindmq.broker.store.consume_queue_table import ConsumeQueueTable
from rewindmq.broker.store.disk import Disk
from rewindmq.broker.store.errors import StoreError
from rewindmq.broker.store.mapped_file import MapPool
from rewindmq.protocol import fastjson
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.properties import KEYS, find_property

_log = logging.getLogger(__name__)

_POSITIONS: Final = "queueOffsetMap"


class CompactionStore:
    """The queues of compaction topics.

    Attributes:
        topics: the names of these topics; of others nothing is read or written here.
    """

    def __init__(
        self,
        folder: Path,
        config: StoreConfig,
        log: CommitLog,
        queues: ConsumeQueueTable,
        disk: Disk,
        pool: MapPool,
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

    def load(self, *, clean: bool) -> None:
        """Find every queue on disk.

        Raises:
            StoreError: a file that does not belong there, of the wrong size, or without its counterpart.
            OSError: the disk refuses.
        """
        self._positions = self._read_positions()
        for folder in (self._folder / LOG_FOLDER, self._folder / CQ_FOLDER):
            for topic in self._disk.list_folder(folder):
                for queue in self._disk.list_folder(topic.path) if not topic.is_file else ():
                    name = queue.path.name
                    key = (topic.path.name, int(name) if name.isascii() and name.isdigit() else -1)
                    if not queue.is_file and key[1] >= 0 and key not in self._queues:
                        self._queues[key] = self._new(*key)
                        self._queues[key].load(clean=clean)

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
        name = str(queue_id)
        folders = (self._folder / LOG_FOLDER / topic / name, self._folder / CQ_FOLDER / topic / name)
        last_compacted = self._positions.get(f"{topic}_{queue_id}", -1)
        return CompactionQueue(folders, last_compacted, self._config, self._disk, self._pool)

    def set_topics(self, topics: Collection[str]) -> None:
        """Say which topics these are; messages that are missing here are copied from the commit log."""
        new = frozenset(topics) - self.topics
        self.topics = frozenset(topics)
        for queue in self._ordinary:
            if queue.topic in new:
                self.find(queue.topic, queue.queue_id)

    def find(self, topic: str, queue_id: int) -> CompactionQueue | None:
        """A queue with all its messages; None when it never had one."""
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
            except OSError as error:
                # The commit log has them; whoever asks next tries again.
                _log.error("%s lacks messages: %s", self._folder, error.strerror)
        return found

    def prepare_put(self, topic: str, queue_id: int, now_ms: int) -> None:
        """Let the ordinary queue go on behind the last message here. OSError when the disk gives no room."""
        found = self._queues.get((topic, queue_id))
        if found is not None:
            ordinary = self._ordinary.get((topic, queue_id)) or self._ordinary.create(topic, queue_id)
            if ordinary is not None and ordinary.max_offset < found.max_offset:
                ordinary.skip_to(found.max_offset, now_ms)

    def _copy(self, ordinary: ConsumeQueue, target: CompactionQueue) -> None:
        log = self._log
        index = max(target.seen_offset, ordinary.min_offset)
        while index < ordinary.max_offset:
            unit = ordinary.unit(index)
            record = None if unit is None or unit[1] == FILLER_SIZE else log.record_at(unit[0])
            if unit is not None and record is not None and has_keys(log.properties_of(record)):
                data = log.read(record.physical_offset, record.size)
                assert data is not None
                target.append(data, unit[2], record.store_timestamp, record.queue_offset)
            index += 1
            target.seen_offset = index

    def flush(self) -> None:
        """Make everything written durable; may run on a worker thread. OSError when the disk refuses."""
        for queue in list(self._queues.values()):
            queue.flush()


def has_keys(properties: bytes) -> bool:
    """Whether a properties text names a key: without one, a message has no place in a compaction topic."""
    return bool((find_property(properties.decode("utf-8", "replace"), KEYS) or "").strip())
