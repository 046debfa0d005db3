"""All consume queues of a store, by topic and queue id."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Final

from rewindmq.broker.store.config import StoreConfig
from rewindmq.broker.store.consume_queue.queue import ConsumeQueue
from rewindmq.broker.store.files.disk import Disk
from rewindmq.broker.store.files.mapped_file import MmapCache
from rewindmq.broker.store.layout.queue_path import names_a_queue, queue_path

# Queues whose files are deleted at once: at most some ms on a busy disk.
_DELETED_PER_SLICE: Final = 2


class ConsumeQueueTable:
    """Loads queues from ``consumequeue/<topic>/<queueId>`` and creates a queue on its first message.

    Attributes:
        removals: number of queues that were deleted or have started over.
    """

    def __init__(self, folder: Path, config: StoreConfig, disk: Disk, pool: MmapCache) -> None:
        self._folder = folder
        self._file_bytes = config.consume_queue_file_bytes
        self._disk = disk
        self._pool = pool
        self._queues: dict[tuple[str, int], ConsumeQueue] = {}
        # Bound, because each send and pull calls it: ``./scripts/bench --only hot-path``.
        self.get = self._queues.get
        self._by_topic: dict[str, dict[int, ConsumeQueue]] = {}
        # Queues that have started over, and may have files of their earlier lives.
        self._started_over: dict[ConsumeQueue, None] = {}
        # Folders whose deleted files a power failure may still bring back.
        self._unsynced: set[Path] = set()
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
                self._add(queue)

    def create(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        """Create a queue without files; None if topic or id cannot name a folder of RocketMQ's layout."""
        if not names_a_queue(topic, queue_id):
            return None
        queue = self._new(topic, queue_id)
        self._add(queue)
        return queue

    def remove(self, topic: str, queue_id: int) -> None:
        """Delete a queue with its files. After an OSError it may remain without messages."""
        self.removals += 1
        queue = self._queues[topic, queue_id]
        # Before another queue can have files of these names.
        queue.delete_former()
        queue.destroy()
        self._forget(queue)

    @property
    def topics(self) -> list[str]:
        """The topics that have queues."""
        return list(self._by_topic)

    def of_topic(self, topic: str) -> list[ConsumeQueue]:
        """Return the queues of a topic."""
        return list(self._by_topic.get(topic, {}).values())

    def start_over(self, topic: str) -> None:
        """Let all queues of a topic start over at offset 0; ``delete_former`` deletes their files."""
        self.removals += 1
        for queue in self.of_topic(topic):
            queue.start_over()
            self._started_over[queue] = None

    @property
    def has_former(self) -> bool:
        """True if files of an earlier life of a queue are not deleted yet."""
        return bool(self._started_over)

    def delete_former_files(self) -> None:
        """Do the part of ``delete_former`` that waits for the disk; may run on a worker thread.

        Raises:
            OSError: the disk fails; call again.
        """
        for queue in list(self._started_over):
            for dropped in queue.former_files:
                dropped.remove()

    def delete_former(self) -> Generator[None, None, int]:
        """Delete the files of earlier lives, and queues that have no message since. Yields after each slice.

        Returns:
            The number of queues that have started over.

        Raises:
            OSError: the disk fails; call again.
        """
        count = 0
        while self._started_over:
            queue = next(iter(self._started_over))
            queue.delete_former()
            self._unsynced.add(queue.files.folder)
            del self._started_over[queue]
            if not queue.files.files and self._queues.get((queue.topic, queue.queue_id)) is queue:
                self.removals += 1
                self._forget(queue)
            count += 1
            if count % _DELETED_PER_SLICE == 0:
                yield
        return count

    def sync_deletions(self) -> None:
        """Make the deletions of files durable; may run on a worker thread. Raise OSError on failure."""
        while self._unsynced:
            folder = self._unsynced.pop()
            try:
                if self._disk.is_folder(folder):
                    self._disk.sync_folder(folder)
            except OSError:
                self._unsynced.add(folder)
                raise

    def _add(self, queue: ConsumeQueue) -> None:
        self._queues[queue.topic, queue.queue_id] = queue
        self._by_topic.setdefault(queue.topic, {})[queue.queue_id] = queue

    def _forget(self, queue: ConsumeQueue) -> None:
        del self._queues[queue.topic, queue.queue_id]
        queues = self._by_topic[queue.topic]
        del queues[queue.queue_id]
        if not queues:
            del self._by_topic[queue.topic]

    def _new(self, topic: str, queue_id: int) -> ConsumeQueue:
        folder = self._folder / queue_path(topic, queue_id)
        return ConsumeQueue(topic, queue_id, folder, self._file_bytes, self._disk, self._pool)
