"""Options and summary of the job ``compact``."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from rewindmq.broker.store.layout.compaction import CQ_FILE_BYTES, ENTRY_BYTES, LOG_FILE_BYTES
from rewindmq.pipeline.errors import PipelineError

_MIN_FILE_BYTES = 4_096
_MAX_FILE_BYTES = 0x7FFF_FFFF


class Format(StrEnum):
    """Formats of the output."""

    # The compaction store of RocketMQ 5; queue offsets are kept.
    COMPACTION = "compaction"
    # A store of its own; queue offsets are renumbered.
    STORE = "store"


class Scope(StrEnum):
    """Scope of a key: one newest message per queue, or per topic."""

    QUEUE = "queue"
    TOPIC = "topic"


class Keyless(StrEnum):
    """Treatment of messages without a key; the compaction format can only drop them."""

    KEEP = "keep"
    DROP = "drop"


class CompactOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a compaction.

    Attributes:
        topics: topics to compact; empty: those with attribute cleanup.policy=COMPACTION, or all user topics
            if no topic has it.
        tombstone_grace_ms: keep a message without a body if it is at most this much older than the log's
            newest store timestamp; 0 drops it at once, as RocketMQ does.
        segment_bytes: size of a commit log segment (format store); None: as in the source.
        log_file_bytes, cq_file_bytes: sizes of a compaction store's files; the broker must have the same.
    """

    format: Format = Format.COMPACTION
    scope: Scope = Scope.QUEUE
    topics: tuple[str, ...] = ()
    tombstone_grace_ms: int = 0
    keyless: Keyless = Keyless.KEEP
    segment_bytes: int | None = None
    log_file_bytes: int = LOG_FILE_BYTES
    cq_file_bytes: int = CQ_FILE_BYTES

    def check(self) -> None:
        """Check the values.

        Raises:
            PipelineError: a number is out of range.
        """
        if self.tombstone_grace_ms < 0:
            raise PipelineError(f"the tombstone grace of {self.tombstone_grace_ms} ms is negative")
        sizes = {"segments": self.segment_bytes, "compaction log files": self.log_file_bytes}
        for name, size in sizes.items():
            if size is not None and not _MIN_FILE_BYTES <= size <= _MAX_FILE_BYTES:
                raise PipelineError(
                    f"{name} of {size} bytes: the size must be {_MIN_FILE_BYTES} to {_MAX_FILE_BYTES}"
                )
        if self.cq_file_bytes % ENTRY_BYTES or not 2 * ENTRY_BYTES <= self.cq_file_bytes <= _MAX_FILE_BYTES:
            raise PipelineError(
                f"compaction queue files of {self.cq_file_bytes} bytes: the minimum is {2 * ENTRY_BYTES}"
            )

    def to_json(self) -> dict[str, Any]:
        """Return the options as the manifest records them; a run with others needs another output."""
        table: dict[str, Any] = msgspec.to_builtins(self)
        return {**table, "topics": sorted(set(self.topics))}


class TopicCounts(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Counts of one topic's messages; a run that continues an earlier one counts only what was new.

    Attributes:
        read: records of the topic that this run read and that belong to a queue.
        kept: messages in the output.
        superseded: messages with a newer message of the same key.
        tombstones_dropped, tombstones_kept: messages without a body that are the newest of their key.
        keyless_dropped, keyless_kept: messages without a key.
        ends_kept: messages kept only as the newest of their queue, to keep the queue's end in place.
    """

    topic: str
    read: int
    kept: int
    superseded: int
    tombstones_dropped: int
    tombstones_kept: int
    keyless_dropped: int
    keyless_kept: int
    ends_kept: int


class DamagedPlace(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A damaged place of a source log; ``start`` and ``end`` are log positions."""

    store: str
    kind: str
    start: int
    end: int
    detail: str


class CompactSummary(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Result of a compaction.

    Attributes:
        is_new: False if the source had nothing new; then nothing was written.
        generation: number of the published folder.
        messages_read: source records that this run read.
        messages_kept, bytes_kept: messages of the output, and their bytes.
        files_written, files_linked: log files written, and linked from the previous generation.
        keyless_dropped: messages dropped because they have no key.
        damage_count: damaged places of the sources; ``damage`` lists the first.
        topics: counts of each compacted topic.
    """

    output: str
    format: Format
    scope: Scope
    is_new: bool
    generation: int
    messages_read: int = 0
    messages_kept: int = 0
    bytes_kept: int = 0
    keyless_dropped: int = 0
    files_written: int = 0
    files_linked: int = 0
    damage_count: int = 0
    topics: tuple[TopicCounts, ...] = ()
    damage: tuple[DamagedPlace, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return JSON values, named in camelCase."""
        table: dict[str, Any] = msgspec.to_builtins(self)
        return table
