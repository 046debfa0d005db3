"""Recovery at open: truncates log and queues to one consistent end (docs/spec/store.md 9)."""

from __future__ import annotations

import logging
from typing import Final

from rewindmq.broker.store.consume_queue.queue import ConsumeQueue
from rewindmq.broker.store.consume_queue.table import ConsumeQueueTable
from rewindmq.broker.store.consume_queue.tags_code import TagsCoder
from rewindmq.broker.store.log.commit_log import CommitLog
from rewindmq.broker.store.log.record_check import SegmentScan, StoredRecord, check_record, is_blank
from rewindmq.broker.store.recovery.checkpoint import StoreCheckpoint
from rewindmq.protocol.message.sysflag import TRANSACTION_MASK, MessageSysFlag

_LOG: Final = logging.getLogger("rewindmq.store")
# After a clean stop RocketMQ verifies no more than this many segments (CommitLog#recoverNormally).
_SEGMENTS_CHECKED: Final = 3
_HALF: Final = frozenset((int(MessageSysFlag.TRANSACTION_PREPARED), int(MessageSysFlag.TRANSACTION_ROLLBACK)))


class _EntriesMissingError(Exception):
    """A record's queue lacks entries of earlier records."""


class Recovery:
    """Recovers log and queues in one pass, as 4.9.4 does on load and on its first dispatch.

    Recovery truncates the log behind the last intact record, drops entries beyond it and rebuilds missing
    entries. After a crash it rebuilds every entry behind the checkpoint: the disk may have lost parts of it.
    It improves on 4.9.4 in two other ways. If entries are missing, it rebuilds from an earlier segment
    instead of leaving holes (docs/spec/store.md 9.6). Entries of delayed messages always hold their delivery
    time (9.7).

    If the folder of a queue is missing, recovery rebuilds the queue only if one of the records that it scans
    belongs to it. If all messages of the queue are in older segments, they stay unreadable.

    Attributes:
        rebuilt_entries: number of entries that were rebuilt from the log.
    """

    def __init__(
        self,
        log: CommitLog,
        queues: ConsumeQueueTable,
        checkpoint: StoreCheckpoint,
        coder: TagsCoder,
        check_crc: bool,
    ) -> None:
        self._log = log
        self._queues = queues
        self._checkpoint = checkpoint
        self._coder = coder
        self._check_crc = check_crc
        self.rebuilt_entries = 0
        self._is_clean = True
        self._found: dict[tuple[bytes, int], ConsumeQueue | None] = {}

    def run(self, clean: bool) -> None:
        """Recover after a clean stop, or after a crash."""
        segments = self._log.segments.files
        if not segments:
            for queue in self._queues:
                queue.destroy()
            return
        self._is_clean = clean
        if clean:
            verify_from = max(0, len(segments) - _SEGMENTS_CHECKED)
            for queue in self._queues:
                queue.recover()
        else:
            verify_from = self._checkpoint_segment()
            for queue in self._queues:
                queue.recover_before(segments[verify_from].base)
        try:
            end = self._scan(min(verify_from, self._rebuild_segment()), verify_from)
        except _EntriesMissingError:
            end = self._scan(0, verify_from)
        self._log.set_end(end)
        self._log.flushed_offset = end if clean else self._log.min_offset
        for queue in self._queues:
            queue.truncate(end)
            queue.correct_min_offset(self._log.min_offset)
        if self.rebuilt_entries:
            _LOG.info("%d consume queue entries rebuilt from the commit log", self.rebuilt_entries)

    def _checkpoint_segment(self) -> int:
        """Return the number of the newest segment that starts with a record the checkpoint covers."""
        segments = self._log.segments.files
        for number in range(len(segments) - 1, 0, -1):
            segment = segments[number]
            first = check_record(segment.open_map(), 0, segment.size, segment.base, check_crc=False)
            if first is not None and 0 < first.store_timestamp <= self._checkpoint.min_timestamp:
                return number
        return 0

    def _rebuild_segment(self) -> int:
        """Return the number of the segment with the first record that has no queue entry."""
        segments = self._log.segments.files
        newest_end = self._queues.max_physical_offset
        number = min(max((newest_end - segments[0].base) // self._log.segment_bytes, 0), len(segments) - 1)
        segment = segments[number]
        at = newest_end - segment.base
        is_last_record = at >= 0 and is_blank(segment.open_map(), at, segment.size)
        return number + 1 if is_last_record and number + 1 < len(segments) else number

    def _scan(self, start: int, verify_from: int) -> int:
        """Walk the segments from ``start`` on and return where the log ends.

        Segments before ``verify_from`` are walked only to rebuild entries. Damage there loses the entries of
        the rest of that segment; the log behind it stays.
        """
        segments = self._log.segments.files
        for number in range(start, len(segments)):
            verify = number >= verify_from
            scan = SegmentScan(
                segments[number], self._check_crc and verify, ends_torn=verify and not self._is_clean
            )
            newest = self._log.last_store_timestamp
            for record in scan:
                self._dispatch(record, scan, may_restart=start > 0)
                if record.store_timestamp > newest:
                    newest = record.store_timestamp
            self._log.last_store_timestamp = newest
            if not scan.is_complete:
                end = segments[number].base + scan.position
                if verify:
                    return end
                _LOG.error("no intact record at log position %d, rebuild goes on with the next segment", end)
        return segments[-1].base + self._log.segment_bytes

    def _dispatch(self, record: StoredRecord, scan: SegmentScan, *, may_restart: bool) -> None:
        if record.sys_flag & TRANSACTION_MASK in _HALF:
            return
        key = (record.topic, record.queue_id)
        try:
            queue = self._found[key]
        except KeyError:
            queue = self._find(key)
        if queue is None or record.physical_offset + record.size <= queue.max_physical_offset:
            return
        if record.queue_offset > queue.max_offset:
            if may_restart:
                raise _EntriesMissingError
            if queue.max_offset:
                _LOG.error(
                    "queue %d of %s has no message %d; the message at log position %d takes its place",
                    queue.queue_id,
                    queue.topic,
                    queue.max_offset,
                    record.physical_offset,
                )
        before = queue.max_offset
        properties = record.properties(scan.mapping, scan.segment.base)
        tags_code = self._coder.tags_code(queue.topic, properties, record.store_timestamp)
        queue.build(
            record.physical_offset, record.size, tags_code, record.queue_offset, record.store_timestamp
        )
        self.rebuilt_entries += queue.max_offset != before

    def _find(self, key: tuple[bytes, int]) -> ConsumeQueue | None:
        topic = key[0].decode("utf-8", "replace")
        queue = self._queues.get((topic, key[1])) or self._queues.create(topic, key[1])
        if queue is None:
            _LOG.error(
                "queue %d of topic %r cannot have a consume queue; its messages are skipped", key[1], topic
            )
        self._found[key] = queue
        return queue
