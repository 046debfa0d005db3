"""Rebuilds consume queue entries from the records of the log, many at a time."""

from __future__ import annotations

import logging
from typing import Final

from rewindmq.broker.store.consume_queue.queue import ConsumeQueue
from rewindmq.broker.store.consume_queue.table import ConsumeQueueTable
from rewindmq.broker.store.consume_queue.tags_code import TagsCoder
from rewindmq.broker.store.log.record_check import ScannedRecord

_LOG: Final = logging.getLogger("rewindmq.store")
# Entries in memory before they are written, of all queues together: some 10 MB.
_MAX_PENDING: Final = 65_536


class EntriesMissingError(Exception):
    """A record's queue lacks entries of earlier records, or has those of an earlier life."""


class _PendingEntries:
    """Entries that follow a queue's last one and are not written yet.

    Attributes:
        numbers: log position, size and tagsCode of each.
        next_offset: queue offset behind them.
        newest_end: log position behind the newest record with an entry, -1 if there is none.
        file_end: queue offset at which the queue's file ends.
        timestamp: store timestamp of the newest, ms.
        added: entries added to the queue's present life.
        is_complete: no entry before these can be missing, because the queue's life has begun behind the
            first record read.
    """

    __slots__ = (
        "added",
        "file_end",
        "is_complete",
        "newest_end",
        "next_offset",
        "numbers",
        "queue",
        "timestamp",
    )

    def __init__(self, queue: ConsumeQueue, left_out: int) -> None:
        """
        Args:
            left_out: log position before which a queue without files gets no entries.
        """
        self.queue = queue
        self.numbers: list[int] = []
        self.timestamp = 0
        self.added = 0
        self.is_complete = False
        self.follow_queue()
        if not queue.files.files:
            self.newest_end = left_out

    def follow_queue(self) -> None:
        """Continue at the queue's end."""
        queue = self.queue
        self.next_offset = queue.max_offset
        self.newest_end = queue.max_physical_offset
        self.file_end = queue.file_end(queue.max_offset)

    def write(self) -> None:
        """Append the entries to the queue. Raise OSError if the disk fails."""
        numbers = self.numbers
        if numbers:
            self.queue.make_room(len(numbers) // 3, self.timestamp)
            self.queue.append_all(numbers, self.newest_end - numbers[0], self.timestamp)
            self.numbers = []
        self.follow_queue()

    def start_over(self) -> None:
        """Drop all entries: they belong to an earlier life of the queue. Raise OSError if the disk fails."""
        self.numbers = []
        self.queue.destroy()
        self.added = 0
        self.is_complete = True
        self.follow_queue()


class QueueRebuilder:
    """Adds the entries that the queues lack, by the rules of docs/spec/store.md 4.4.

    Attributes:
        count: number of entries added; final after ``finish``.
    """

    def __init__(
        self, queues: ConsumeQueueTable, coder: TagsCoder, *, begin: int, left_out: int, may_restart: bool
    ) -> None:
        """
        Args:
            begin: log position of the first record.
            left_out: log position before which topics without queue files get no entries.
            may_restart: raise EntriesMissingError for a record whose queue lacks earlier entries. Otherwise
                the record takes the place of the first one that is missing.
        """
        self._queues = queues
        self._coder = coder
        self._begin = begin
        self._left_out = left_out
        self._may_restart = may_restart
        self._pending: dict[tuple[bytes, int], _PendingEntries | None] = {}
        self._pending_count = 0
        self.count = 0

    def add(self, record: ScannedRecord) -> None:
        """Add the entry of a message, unless its queue has it.

        Raises:
            EntriesMissingError: see ``may_restart``.
            OSError: the disk fails.
        """
        position, size, topic, queue_id, queue_offset, _, timestamp, properties = record
        key = (topic, queue_id)
        try:
            pending = self._pending[key]
        except KeyError:
            pending = self._pending[key] = self._find(topic, queue_id)
        if pending is None or position + size <= pending.newest_end:
            return
        if queue_offset != pending.next_offset:
            self._add_out_of_order(pending, record)
            return
        queue = pending.queue
        pending.numbers += (position, size, self._coder.tags_code(queue.topic, properties, timestamp))
        pending.newest_end = position + size
        pending.timestamp = timestamp
        pending.next_offset = queue_offset + 1
        pending.added += 1
        self.count += 1
        self._pending_count += 1
        if queue_offset + 1 == pending.file_end:
            # The next entry gives its file another modification time.
            pending.write()
        elif self._pending_count >= _MAX_PENDING:
            self.finish()

    def finish(self) -> None:
        """Write the entries in memory. Raise OSError if the disk fails."""
        for pending in self._pending.values():
            if pending is not None and pending.numbers:
                pending.write()
        self._pending_count = 0

    def _add_out_of_order(self, pending: _PendingEntries, record: ScannedRecord) -> None:
        pending.write()
        queue = pending.queue
        position, size, _, _, queue_offset, _, timestamp, properties = record
        before = queue.max_offset
        if queue_offset < before:
            if not self._is_of_next_life(queue, queue_offset):
                return
            self._start_over(pending)
            before = 0
        else:
            if self._may_restart and not pending.is_complete:
                raise EntriesMissingError
            if before:
                _LOG.error(
                    "queue %d of %s has no message %d; the message at log position %d takes its place",
                    queue.queue_id,
                    queue.topic,
                    before,
                    position,
                )
        tags_code = self._coder.tags_code(queue.topic, properties, timestamp)
        queue.build(position, size, tags_code, queue_offset, timestamp)
        pending.added += 1
        self.count += 1
        pending.follow_queue()

    def _is_of_next_life(self, queue: ConsumeQueue, queue_offset: int) -> bool:
        """Return True if a record behind a queue's newest, with a lower queue offset, begins another life.

        The topic was deleted and created again, or the queue had no message left, at a broker that does not
        write ``topic_end``. A life begins at offset 0. Any other offset means that the beginning was not
        read: it is in an earlier segment, or has expired together with the queue's earlier lives. Otherwise
        the record repeats an offset, and RocketMQ ignores it too (docs/spec/store.md 4.4).

        Raises:
            EntriesMissingError: see ``may_restart``.
        """
        if queue_offset and self._may_restart:
            raise EntriesMissingError
        return not queue_offset or queue.max_physical_offset <= self._begin

    def _start_over(self, pending: _PendingEntries) -> None:
        self.count -= pending.added
        pending.start_over()

    def end_topic(self, topic: bytes, position: int) -> None:
        """Drop the entries of a topic: a record at ``position`` ends its life. Raise OSError on failure."""
        for queue in self._queues.of_topic(topic.decode("utf-8", "replace")):
            key = (topic, queue.queue_id)
            pending = self._pending.get(key)
            if pending is None:
                pending = self._pending[key] = _PendingEntries(queue, self._left_out_of(queue.topic))
            if pending.newest_end <= position:
                self._start_over(pending)

    def _find(self, topic: bytes, queue_id: int) -> _PendingEntries | None:
        name = topic.decode("utf-8", "replace")
        queue = self._queues.get((name, queue_id)) or self._queues.create(name, queue_id)
        if queue is None:
            _LOG.error(
                "queue %d of topic %r cannot have a consume queue; its messages are skipped", queue_id, name
            )
            return None
        return _PendingEntries(queue, self._left_out_of(name))

    def _left_out_of(self, topic: str) -> int:
        """Return the log position before which queues of a topic that have no files get no entries."""
        if not self._left_out:
            return 0
        begins = [queue.life_begin for queue in self._queues.of_topic(topic)]
        # All queues of a topic are deleted together: where one has begun, the others were deleted before.
        return min((begin for begin in begins if begin >= 0), default=self._left_out)
