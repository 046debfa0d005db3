"""The store's settings, under the keys that RocketMQ's ``broker.conf`` uses."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

import msgspec

from rewindmq.broker.store.errors import StoreError
from rewindmq.broker.store.layout.compaction import ENTRY_BYTES
from rewindmq.broker.store.layout.index import MAX_HASH_SLOT_NUM, MAX_INDEX_NUM, file_bytes
from rewindmq.broker.store.layout.timer import UNIT_BYTES, WHEEL_SLOTS

CQ_ENTRY_BYTES: Final = 20
# 4.9.4: MessageStoreConfig.messageDelayLevel.
DEFAULT_DELAY_LEVELS: Final = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
_PRECISIONS_MS: Final = (100, 200, 500, 1_000)
# 5.x TimerMessageStore.TIMER_BLANK_SLOTS.
_BLANK_SLOTS: Final = 60
# With 0, a pull returns one message, as in RocketMQ.
TransferLimit = Annotated[int, msgspec.Meta(ge=0, le=0x7FFF_FFFF)]


class FlushDiskType(StrEnum):
    """Whether a send response waits for the disk (RocketMQ ``FlushDiskType``)."""

    SYNC_FLUSH = "SYNC_FLUSH"
    ASYNC_FLUSH = "ASYNC_FLUSH"


class StoreConfig(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Settings of ``MessageStoreConfig`` 4.9.4 that the store supports (docs/spec/store.md 2, 4.5, 10.1).

    Sizes are bytes. Fields are RocketMQ's keys in snake case.
    """

    mapped_file_size_commit_log: int = 1_073_741_824
    # Rounded up to whole entries.
    mapped_file_size_consume_queue: int = 6_000_000
    flush_disk_type: FlushDiskType = FlushDiskType.ASYNC_FLUSH
    max_message_size: int = 4_194_304
    check_crc_on_recover: bool = msgspec.field(name="checkCRCOnRecover", default=True)
    message_delay_level: str = DEFAULT_DELAY_LEVELS
    # Limits of a pull; the first message is always returned. They can change while the broker runs.
    max_transfer_bytes_on_message_in_memory: TransferLimit = 262_144
    max_transfer_count_on_message_in_memory: TransferLimit = 32
    max_transfer_bytes_on_message_in_disk: TransferLimit = 65_536
    max_transfer_count_on_message_in_disk: TransferLimit = 8
    # Messages further behind the log's tail than this percentage of physical memory count as on disk.
    access_message_in_memory_max_ratio: int = 40
    message_index_enable: bool = True
    max_hash_slot_num: int = MAX_HASH_SLOT_NUM
    max_index_num: int = MAX_INDEX_NUM
    # 5.x: file sizes of the compaction store, before rounding.
    compaction_mapped_file_size: int = 104_857_600
    compaction_cq_mapped_file_size: int = 10_485_760
    # 5.x: timer messages. Times are ms unless named otherwise.
    timer_wheel_enable: bool = True
    timer_precision_ms: int = 1_000
    timer_max_delay_sec: Annotated[int, msgspec.Meta(ge=0, le=0x7FFF_FFFF)] = 259_200
    timer_roll_window_slot: int = 172_800
    timer_flush_interval_ms: Annotated[int, msgspec.Meta(ge=1, le=0x7FFF_FFFF)] = 1_000
    timer_congest_num_each_slot: Annotated[int, msgspec.Meta(ge=1, le=0x7FFF_FFFF)] = 0x7FFF_FFFF
    mapped_file_size_timer_log: int = 104_857_600
    append_topic_for_timer_delete_key: bool = False
    # RewindMQ only: slots of half a wheel; with another number, RocketMQ refuses the file.
    timer_wheel_slots: Annotated[int, msgspec.Meta(ge=128, le=WHEEL_SLOTS)] = WHEEL_SLOTS
    # RewindMQ only: assumed physical memory; None reads it from the machine.
    physical_memory_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.mapped_file_size_commit_log < 4096 or self.mapped_file_size_commit_log > 0x7FFF_FFFF:
            raise StoreError(
                f"mappedFileSizeCommitLog is {self.mapped_file_size_commit_log},"
                " it must be between 4096 and 2147483647"
            )
        if not CQ_ENTRY_BYTES <= self.mapped_file_size_consume_queue <= 0x7FFF_FFFF:
            raise StoreError(
                f"mappedFileSizeConsumeQueue is {self.mapped_file_size_consume_queue},"
                f" it must be between {CQ_ENTRY_BYTES} and 2147483647"
            )
        if not 2 * ENTRY_BYTES <= self.compaction_cq_mapped_file_size <= 0x0FFF_FFFF:
            raise StoreError(
                f"compactionCqMappedFileSize is {self.compaction_cq_mapped_file_size},"
                f" it must be between {2 * ENTRY_BYTES} and {0x0FFF_FFFF}"
            )
        if not 0 < self.compaction_mapped_file_size <= 0x3FFF_FFFF:
            raise StoreError(
                f"compactionMappedFileSize is {self.compaction_mapped_file_size},"
                f" it must be between 1 and {0x3FFF_FFFF}"
            )
        if not 8 * UNIT_BYTES <= self.mapped_file_size_timer_log <= 0x7FFF_FFFF:
            raise StoreError(
                f"mappedFileSizeTimerLog is {self.mapped_file_size_timer_log},"
                f" it must be between {8 * UNIT_BYTES} and {0x7FFF_FFFF}"
            )
        if self.max_hash_slot_num < 1 or self.max_index_num < 2:
            raise StoreError("maxHashSlotNum must be at least 1, and maxIndexNum at least 2")
        if (size := file_bytes(self.max_hash_slot_num, self.max_index_num)) > 0x7FFF_FFFF:
            raise StoreError(
                f"maxHashSlotNum {self.max_hash_slot_num} and maxIndexNum {self.max_index_num} make index"
                f" files of {size} bytes, the limit is 2147483647"
            )

    @property
    def consume_queue_file_bytes(self) -> int:
        """``mappedFileSizeConsumeQueue`` rounded up to whole entries."""
        return -(-self.mapped_file_size_consume_queue // CQ_ENTRY_BYTES) * CQ_ENTRY_BYTES

    @property
    def timer_precision(self) -> int:
        """``timerPrecisionMs`` as RocketMQ rounds it: 100, 200, 500 or 1000."""
        return max((step for step in _PRECISIONS_MS if step <= self.timer_precision_ms), default=100)

    @property
    def timer_window_slots(self) -> int:
        """``timerRollWindowSlot``, or nearly half a wheel if it is out of range."""
        longest = self.timer_wheel_slots - _BLANK_SLOTS
        return self.timer_roll_window_slot if 2 <= self.timer_roll_window_slot <= longest else longest

    @property
    def compaction_cq_file_bytes(self) -> int:
        """``compactionCqMappedFileSize`` rounded up to whole entries."""
        return self.compaction_cq_mapped_file_size // ENTRY_BYTES * ENTRY_BYTES

    @property
    def compaction_log_file_bytes(self) -> int:
        """``compactionMappedFileSize`` as 5.3.3 rounds it: a multiple of the other, at least 5 times."""
        cq_bytes = self.compaction_cq_file_bytes
        count, rest = divmod(self.compaction_mapped_file_size, cq_bytes)
        if count < 5:
            return 5 * cq_bytes
        return count * cq_bytes if 0 < rest < cq_bytes // 2 else (count + 1) * cq_bytes
