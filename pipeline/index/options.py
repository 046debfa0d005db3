"""What an index is asked for, and what is told at the end."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from rewindmq.broker.store.config import CQ_UNIT_BYTES, DEFAULT_DELAY_LEVELS
from rewindmq.broker.store.consume_queue.tags_code import DelayLevels
from rewindmq.broker.store.errors import StoreError
from rewindmq.broker.store.layout.index import MAX_HASH_SLOT_NUM, MAX_INDEX_NUM, file_bytes
from rewindmq.pipeline.errors import PipelineError

_INT32_MAX: Final = 0x7FFF_FFFF


class IndexOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of an index; they are the settings of the broker that shall load it.

    Attributes:
        max_hash_slot_num, max_index_num: of an index file.
        consume_queue_file_bytes: mappedFileSizeConsumeQueue; None: that of the store's consume queue files,
            6,000,000 when there are none.
        message_delay_level: delivery times in the schedule topic's queues follow from it.
    """

    max_hash_slot_num: int = MAX_HASH_SLOT_NUM
    max_index_num: int = MAX_INDEX_NUM
    consume_queue_file_bytes: int | None = None
    message_delay_level: str = DEFAULT_DELAY_LEVELS

    def check(self) -> None:
        """Refuse what cannot be done.

        Raises:
            PipelineError: a number out of its range, or delay levels that are none.
        """
        if self.max_hash_slot_num < 1 or self.max_index_num < 2:
            raise PipelineError("maxHashSlotNum must be at least 1, and maxIndexNum at least 2")
        if (size := file_bytes(self.max_hash_slot_num, self.max_index_num)) > _INT32_MAX:
            raise PipelineError(f"index files of {size} bytes: at most {_INT32_MAX} are possible")
        size = self.consume_queue_file_bytes or CQ_UNIT_BYTES
        if size % CQ_UNIT_BYTES or not CQ_UNIT_BYTES <= size <= _INT32_MAX:
            raise PipelineError(
                f"consume queue files of {size} bytes: possible are multiples of {CQ_UNIT_BYTES}"
                f" up to {_INT32_MAX}"
            )
        try:
            DelayLevels(self.message_delay_level)
        except StoreError as error:
            raise PipelineError(str(error)) from None


class QueueGap(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Where a queue's records state queue offsets that do not follow one another.

    Attributes:
        expected: number of the unit that the record got, as a broker numbers it on a rebuild.
        found: queue offset that the record states.
    """

    topic: str
    queue_id: int
    expected: int
    found: int
    physical_offset: int


class DamagedRange(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A place of the log that could not be read; ``start`` and ``end`` are log positions."""

    kind: str
    start: int
    end: int
    detail: str


class IndexSummary(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What an index run did.

    Attributes:
        is_new: False: the store had nothing new, so nothing was written.
        generation: number of the published folder.
        log_begin, log_end: part of the log that the output tells of.
        log_bytes_read: what this run read of the log; the counts below are of it.
        messages: records read.
        queues, queue_units: consume queues that got units, and how many.
        index_entries: keys put into the index.
        index_files, parquet_files: of the output.
        bytes_written: bytes used of the files written, with what was copied of files gone on with.
        files_linked: files of the generation before that are files of this one.
        repeated: records without a unit of their own, since the queue has one of their queue offset.
        passed_over: records of topics or queue ids that can be no folder: no unit either.
        gap_count: places where units had to be renumbered; ``gaps`` lists the first ones.
        damage_count: damaged places of the log; ``damage`` lists the first ones.
    """

    output: str
    is_new: bool
    generation: int
    log_begin: int
    log_end: int
    log_bytes_read: int = 0
    messages: int = 0
    queues: int = 0
    queue_units: int = 0
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
        """JSON values, named in camelCase."""
        table: dict[str, Any] = msgspec.to_builtins(self)
        return table
