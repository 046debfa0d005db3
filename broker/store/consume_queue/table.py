"""All consume queues of a store, by topic and queue id."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rewindmq.broker.store.config import StoreConfig
from rewindmq.broker.store.consume_queue.queue import ConsumeQueue
from rewindmq.broker.store.files.disk import Disk
from rewindmq.broker.store.files.mapped_file import MmapCache
from rewindmq.broker.store.layout.queue_path import names_a_queue, queue_path


class ConsumeQueueTable:
    """Loads queues from ``consumequeue/<topic>/<queueId>`` and creates a queue on its first message.

    Attributes:
        removals: number of queues that were deleted.
    """

    def __init__(self, folder: Path, config: StoreConfig, disk: Disk, pool: MmapCache) -> None:
        self._folder = folder
        self._file_bytes = config.consume_queue_file_bytes
        self._disk = disk
        self._pool = pool
        self._queues: dict[tuple[str, int], ConsumeQueue] = {}
        self.get = self._queues.get
        self.removals = 0

    def __iter__(self) -> Iterator[ConsumeQueue]:
        return iter(list(self._queues.values()))

    @property
    def max_physical_offset(self) -> int:
        """Log position behind the newest record with an entry in any queue, -1 if there is none."""
        return max((queue.max_physical_offset for queue in self._queues.values()), default=-1)

    def load(self) -> None:
        """Find every queue on disk; ignore folders that are not queue ids, as RocketMQ does.

        Raises:
            StoreError: a file does not belong there, or has the wrong size.
        """
        for topic_folder in self._disk.list_folder(self._folder):
            topic = topic_folder.path.name
            if not topic_folder.is_folder or not names_a_queue(topic, 0):
                continue
            for queue_folder in self._disk.list_folder(topic_folder.path):
                name = queue_folder.path.name
                if not (name.isascii() and name.isdigit()) or str(int(name)) != name:
                    continue
                if not names_a_queue(topic, int(name)):
                    continue
                queue = self._new(topic, int(name))
                queue.files.load()
                self._queues[queue.topic, queue.queue_id] = queue

    def create(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        """Create a queue without files; None if topic or id cannot name a folder of RocketMQ's layout."""
        if not names_a_queue(topic, queue_id):
            return None
        queue = self._new(topic, queue_id)
        self._queues[topic, queue_id] = queue
        return queue

    def remove(self, topic: str, queue_id: int) -> None:
        """Delete a queue with its files. After an OSError it may remain without messages."""
        self.removals += 1
        self._queues[topic, queue_id].destroy()
        del self._queues[topic, queue_id]

    def _new(self, topic: str, queue_id: int) -> ConsumeQueue:
        folder = self._folder / queue_path(topic, queue_id)
        return ConsumeQueue(topic, queue_id, folder, self._file_bytes, self._disk, self._pool)
