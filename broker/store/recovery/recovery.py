"""Recovery at open: truncates log and queues to one consistent end (docs/spec/store.md 9)."""

from __future__ import annotations

import logging
from typing import Final

from rewindmq.broker.store.consume_queue.queue import ConsumeQueue
from rewindmq.broker.store.consume_queue.table import ConsumeQueueTable
from rewindmq.broker.store.consume_queue.tags_code import TagsCoder
from rewindmq.broker.store.layout.known_end import KnownEnd
from rewindmq.broker.store.layout.topic_end import is_topic_end
from rewindmq.broker.store.log.commit_log import CommitLog
from rewindmq.broker.store.log.record_check import SegmentScan, check_record, is_blank
from rewindmq.broker.store.recovery.checkpoint import StoreCheckpoint
from rewindmq.broker.store.recovery.proven import find_proven_part
from rewindmq.broker.store.recovery.rebuilding import EntriesMissingError, QueueRebuilder
from rewindmq.protocol.message.sysflag import TRANSACTION_MASK, MessageSysFlag

_LOG: Final = logging.getLogger("rewindmq.store")
# After a clean stop RocketMQ verifies no more than this many segments (CommitLog#recoverNormally).
_SEGMENTS_CHECKED: Final = 3
_HALF: Final = frozenset((int(MessageSysFlag.TRANSACTION_PREPARED), int(MessageSysFlag.TRANSACTION_ROLLBACK)))


class Recovery:
    """Recovers log and queues in one pass, as 4.9.4 does on load and on its first dispatch.

    Recovery truncates the log behind the last intact record, drops entries beyond it and rebuilds missing
    entries. After a crash it rebuilds every entry behind the checkpoint: the disk may have lost parts of it.
    It reads records that the checkpoint covers only if queues lack entries of them.

    Recovery improves on 4.9.4 in two other ways. If entries are missing, it rebuilds from an earlier segment
    instead of leaving holes (docs/spec/store.md 9.6). Entries of delayed messages always hold their delivery
    time (9.7).

    If the folder of a queue is missing, recovery rebuilds the queue only if one of the records that it scans
    belongs to it. If all messages of the queue are in older segments, they stay unreadable. After a clean
    stop, the queue may be missing because RocketMQ has deleted its topic. As in RocketMQ, only records behind
    the newest entry of all queues count then, or those behind the first entry of the topic's other queues.

    A topic that was deleted has several lives in the log. A record of ``topic_end`` ends each of them. In a
    log of RocketMQ, which has no such record, the next life begins where a queue's offsets start over at 0:
    until then, RocketMQ too rebuilds the queues of a deleted topic after a crash.

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

    def run(self, clean: bool, known: KnownEnd | None = None) -> None:
        """Recover after a clean stop, or after a crash.

        Args:
            known: where log and queues ended when a snapshot was taken. It is used if the files agree with
                it and were not opened since.

        Raises:
            OSError: the disk fails.
        """
        segments = self._log.segments.files
        if not segments:
            for queue in self._queues:
                queue.destroy()
            return
        if clean and known is not None and self._agrees_with(known):
            self._end_at(known)
            return
        self._is_clean = clean
        proven_end = left_out = 0
        if clean:
            verify_from = max(0, len(segments) - _SEGMENTS_CHECKED)
            for queue in self._queues:
                queue.recover()
            left_out = max(0, self._queues.max_physical_offset)
        else:
            verify_from = self._checkpoint_segment()
            proven_end = self._keep_proven(segments[verify_from].base)
        start = min(verify_from, self._rebuild_segment())
        try:
            end = self._scan(start, verify_from, proven_end if start == verify_from else 0, left_out)
        except EntriesMissingError:
            end = self._scan(0, verify_from, 0, 0)
        self._log.set_end(end)
        self._log.flushed_offset = end if clean else self._log.min_offset
        for queue in self._queues:
            queue.truncate(end)
            queue.correct_min_offset(self._log.min_offset)
        if self.rebuilt_entries:
            _LOG.info("%d consume queue entries rebuilt from the commit log", self.rebuilt_entries)

    def _agrees_with(self, known: KnownEnd) -> bool:
        """Return True if the files can end there, and no record follows."""
        segments = self._log.segments
        if not 0 <= known.log_end - segments.files[0].base <= len(segments.files) * self._log.segment_bytes:
            return False
        segment = segments.find(known.log_end)
        if segment is not None:
            at = known.log_end - segment.base
            follows = check_record(segment.open_map(), at, segment.size, known.log_end, check_crc=False)
            if follows is not None or is_blank(segment.open_map(), at, segment.size):
                return False
        return all(self._can_end(queue, known) for queue in self._queues)

    def _can_end(self, queue: ConsumeQueue, known: KnownEnd) -> bool:
        end = known.queue_ends.get(queue.topic, {}).get(queue.queue_id)
        if not queue.files.files:
            return end is None
        if end is None or not queue.slots.start <= end <= queue.slots.stop:
            return False
        # Nothing was added to the queue.
        return end == queue.slots.stop or queue.slot(end)[1] == 0

    def _end_at(self, known: KnownEnd) -> None:
        """Use the ends of a snapshot; the files may not be durable."""
        for queue in self._queues:
            if queue.files.files:
                queue.keep_before(known.queue_ends[queue.topic][queue.queue_id])
        self._log.last_store_timestamp = known.last_store_timestamp
        self._log.set_end(known.log_end)
        self._log.flushed_offset = self._log.min_offset
        for queue in self._queues:
            queue.correct_min_offset(self._log.min_offset)

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

    def _keep_proven(self, base: int) -> int:
        """Drop the queue entries that the checkpoint does not prove; return the log position it proves.

        Args:
            base: log position of the first record that the checkpoint may not cover.
        """
        proven = find_proven_part(self._log, self._queues, base, self._checkpoint.min_timestamp)
        for queue in self._queues:
            end = None if proven is None else proven.queue_ends.get(queue)
            if end is None:
                queue.recover_before(base)
            else:
                queue.keep_before(end)
        if proven is None:
            return 0
        self._log.last_store_timestamp = proven.store_timestamp
        return proven.end

    def _scan(self, start: int, verify_from: int, proven_end: int, left_out: int) -> int:
        """Walk the segments from number ``start`` on and return where the log ends.

        Segments before ``verify_from`` are walked only to rebuild entries. Damage there loses the entries of
        the rest of that segment; the log behind it stays.

        Args:
            proven_end: log position in the first segment at which the walk begins; 0 is the segment's base.
            left_out: log position before which topics without queue files get no entries.
        """
        segments = self._log.segments.files
        rebuilder = QueueRebuilder(
            self._queues,
            self._coder,
            begin=max(segments[start].base, proven_end),
            left_out=left_out,
            may_restart=start > 0 or proven_end > 0 or left_out > 0,
        )
        end = segments[-1].base + self._log.segment_bytes
        for number in range(start, len(segments)):
            verify = number >= verify_from
            base = segments[number].base
            scan = SegmentScan(
                segments[number],
                self._check_crc and verify,
                start=max(proven_end - base, 0),
                ends_torn=verify and not self._is_clean,
            )
            self._read(scan, rebuilder)
            if not scan.is_complete:
                if verify:
                    end = base + scan.position
                    break
                _LOG.error(
                    "no intact record at log position %d, rebuild goes on with the next segment",
                    base + scan.position,
                )
        rebuilder.finish()
        self.rebuilt_entries += rebuilder.count
        return end

    def _read(self, scan: SegmentScan, rebuilder: QueueRebuilder) -> None:
        newest = self._log.last_store_timestamp
        for record in scan:
            if record[5] & TRANSACTION_MASK not in _HALF:
                rebuilder.add(record)
            elif is_topic_end(record[5], record[7]):
                rebuilder.end_topic(record[2], record[0])
            if record[6] > newest:
                newest = record[6]
        self._log.last_store_timestamp = newest
