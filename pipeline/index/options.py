"""Options and summary of the job ``index``."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from rewindmq.broker.store.config import CQ_ENTRY_BYTES, DEFAULT_DELAY_LEVELS
from rewindmq.broker.store.consume_queue.tags_code import DelayLevels
from rewindmq.broker.store.errors import StoreError
from rewindmq.broker.store.layout.index import MAX_HASH_SLOT_NUM, MAX_INDEX_NUM, file_bytes
from rewindmq.pipeline.errors import PipelineError

_INT32_MAX: Final = 0x7FFF_FFFF


class IndexOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of an index; they must match the configuration of the broker that will load the index.

    Attributes:
        max_hash_slot_num, max_index_num: slots and entries of an index file.
        consume_queue_file_bytes: mappedFileSizeConsumeQueue; None: the size of the store's consume queue
            files, or 6,000,000 if there are none.
        message_delay_level: sets the delivery times in the schedule topic's queues.
    """

    max_hash_slot_num: int = MAX_HASH_SLOT_NUM
    max_index_num: int = MAX_INDEX_NUM
    consume_queue_file_bytes: int | None = None
    message_delay_level: str = DEFAULT_DELAY_LEVELS

    def check(self) -> None:
        """Check the values.

        Raises:
            PipelineError: a number is out of range, or the delay levels are invalid.
        """
        if self.max_hash_slot_num < 1 or self.max_index_num < 2:
            raise PipelineError("maxHashSlotNum must be at least 1 and maxIndexNum at least 2")
        if (size := file_bytes(self.max_hash_slot_num, self.max_index_num)) > _INT32_MAX:
            raise PipelineError(f"index files of {size} bytes: the maximum is {_INT32_MAX}")
        size = self.consume_queue_file_bytes or CQ_ENTRY_BYTES
        if size % CQ_ENTRY_BYTES or not CQ_ENTRY_BYTES <= size <= _INT32_MAX:
            raise PipelineError(
                f"consume queue files of {size} bytes: the size must be a multiple of {CQ_ENTRY_BYTES}"
                f" and at most {_INT32_MAX}"
            )
        try:
            DelayLevels(self.message_delay_level)
        except StoreError as error:
            raise PipelineError(str(error)) from None


class QueueGap(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A place where the queue offsets that a queue's records state are not consecutive.

    Attributes:
        expected: number of the entry, here and at a broker that rebuilds the queue.
        found: queue offset that the record states.
    """

    topic: str
    queue_id: int
    expected: int
    found: int
    physical_offset: int


class DamagedRange(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A damaged place of the log; ``start`` and ``end`` are log positions."""

    kind: str
    start: int
    end: int
    detail: str


class IndexSummary(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Result of an index run.

    Attributes:
        is_new: False if the store had nothing new; then nothing was written.
        generation: number of the published folder.
        log_begin, log_end: part of the log that the output covers.
        log_bytes_read: bytes of log that this run read; the counts below refer to them.
        messages: records read.
        queues, queue_entries: consume queues with new entries, and the number of these entries.
        index_entries: entries added to the key index.
        index_files, parquet_files: files of the output.
        bytes_written: bytes used in the files written, including those copied from continued files.
        files_linked: files linked from the previous generation.
        repeated: records without a ConsumeQueue entry, because the queue already has their queue offset.
        passed_over: records without an entry, because topic or queue id cannot name a folder.
        gap_count: places where entries had to be renumbered; ``gaps`` lists the first.
        damage_count: damaged places of the log; ``damage`` lists the first.
    """

    output: str
    is_new: bool
    generation: int
    log_begin: int
    log_end: int
    log_bytes_read: int = 0
    messages: int = 0
    queues: int = 0
    queue_entries: int = 0
    index_entries: int = 0
    index_files: int = 0
    parquet_files: int = 0
    bytes_written: int = 0
    files_linked: int = 0
    repeated: int = 0
    passed_over: int = 0
    gap_count: int = 0
    damage_count: int = 0
    gaps: tuple[QueueGap, ...] = ()
    damage: tuple[DamagedRange, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return JSON values, named in camelCase."""
        table: dict[str, Any] = msgspec.to_builtins(self)
        return table
