"""What a snapshot of an open store consists of.

Files that are full never change again in place: a snapshot may have them as hard links. The files of a store
are written in place only at their ends, except the last file of the key index. Recovery may truncate the log
or a queue, and continue in a file that was full: ``Disk.unshare`` gives the store a copy of its own then.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rewindmq.broker.store.config import CQ_ENTRY_BYTES
from rewindmq.broker.store.consume_queue.table import ConsumeQueueTable
from rewindmq.broker.store.files.disk import Disk
from rewindmq.broker.store.index.service import IndexService
from rewindmq.broker.store.layout.known_end import KnownEnd
from rewindmq.broker.store.layout.paths import StoreLayout
from rewindmq.broker.store.log.commit_log import CommitLog
from rewindmq.protocol.files.store_files import StoreFiles

_TEMPORARY: Final = ".tmp"


class OpenStore:
    """Describes an open store to those who copy it; valid until the store changes."""

    def __init__(
        self, layout: StoreLayout, log: CommitLog, queues: ConsumeQueueTable, index: IndexService, disk: Disk
    ) -> None:
        self._layout = layout
        self._log = log
        self._queues = queues
        self._index = index
        self._disk = disk

    def files(self) -> StoreFiles:
        """Return the files that a copy of the store needs."""
        found = StoreFiles([], [])
        for path, is_full in (*self._log_files(), *self._queue_files(), *self._index.paths()):
            (found.full if is_full else found.growing).append(self._relative(path))
        found.growing.extend(map(self._relative, self._others(self._layout.root)))
        return found

    def known_end(self) -> KnownEnd:
        """Return where log and queues end."""
        ends: dict[str, dict[int, int]] = {}
        for queue in self._queues:
            if queue.files.files:
                ends.setdefault(queue.topic, {})[queue.queue_id] = queue.max_offset
        return KnownEnd(self._log.max_offset, self._log.last_store_timestamp, ends)

    def _log_files(self) -> Iterator[tuple[Path, bool]]:
        files = self._log.segments.files
        for file in files:
            yield file.path, file is not files[-1]

    def _queue_files(self) -> Iterator[tuple[Path, bool]]:
        for queue in self._queues:
            end = queue.max_offset * CQ_ENTRY_BYTES
            for file in queue.files.files:
                yield file.path, file.base + file.size <= end

    def _others(self, folder: Path) -> Iterator[Path]:
        """Yield the files that are not of the log, the queues and the key index."""
        layout = self._layout
        skipped = {layout.commit_log, layout.consume_queue, layout.index}
        skipped |= {layout.lock, layout.abort, layout.known_end}
        for entry in self._disk.list_folder(folder):
            if entry.path in skipped or entry.path.name.endswith(_TEMPORARY):
                continue
            if entry.is_file:
                yield entry.path
            elif entry.is_folder:
                yield from self._others(entry.path)

    def _relative(self, path: Path) -> str:
        return path.relative_to(self._layout.root).as_posix()
