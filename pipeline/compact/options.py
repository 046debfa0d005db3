"""What a compaction is asked for, and what it tells at its end."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from rewindmq.broker.store.layout.compaction import CQ_FILE_BYTES, LOG_FILE_BYTES, UNIT_BYTES
from rewindmq.pipeline.errors import PipelineError

_MIN_FILE_BYTES = 4_096
_MAX_FILE_BYTES = 0x7FFF_FFFF


class Format(StrEnum):
    """What is written."""

    # 5.x's compaction store, queue offsets as they were.
    COMPACTION = "compaction"
    # A store of its own, queues numbered afresh.
    STORE = "store"


class Scope(StrEnum):
    """Where a key has one newest message."""

    QUEUE = "queue"
    TOPIC = "topic"


class Keyless(StrEnum):
    """What becomes of messages without a key; the compaction format can only drop them."""

    KEEP = "keep"
    DROP = "drop"


class CompactOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a compaction.

    Attributes:
        topics: to be compacted; empty: those with attribute cleanup.policy=COMPACTION, or all user topics
            where none has it.
        tombstone_grace_ms: how long a message without a body is kept, counted back from the newest store
            timestamp of the log; 0 drops it at once, as RocketMQ does.
        segment_bytes: of a commit log segment (format store); None: as in the source.
        log_file_bytes, cq_file_bytes: of a compaction store's files; a broker has to be set to the same.
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
        """Refuse what cannot be done.

        Raises:
            PipelineError: a number out of its range.
        """
        if self.tombstone_grace_ms < 0:
            raise PipelineError(f"a tombstone grace of {self.tombstone_grace_ms} ms is less than nothing")
        sizes = {"segments": self.segment_bytes, "compaction log files": self.log_file_bytes}
        for name, size in sizes.items():
            if size is not None and not _MIN_FILE_BYTES <= size <= _MAX_FILE_BYTES:
                raise PipelineError(
                    f"{name} of {size} bytes: between {_MIN_FILE_BYTES} and {_MAX_FILE_BYTES} are possible"
                )
        if self.cq_file_bytes % UNIT_BYTES or not 2 * UNIT_BYTES <= self.cq_file_bytes <= _MAX_FILE_BYTES:
            raise PipelineError(
                f"compaction queue files of {self.cq_file_bytes} bytes: at least two units of {UNIT_BYTES}"
            )

    def to_json(self) -> dict[str, Any]:
        """As the manifest records them; a run with others is another output."""
        table: dict[str, Any] = msgspec.to_builtins(self)
        return {**table, "topics": sorted(set(self.topics))}


class TopicCounts(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What became of one topic's messages; a run that goes on with an earlier one counts what was new.

    Attributes:
        read: records read of the topic, those outside of queues left out.
        kept: messages of the output.
        superseded: of the messages considered, those with a newer one of their key.
        tombstones_dropped, tombstones_kept: newest of their key, without a body.
        keyless_dropped, keyless_kept: without a key.
        ends_kept: kept only because they are the newest of their queue, so that its end does not move back.
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


class DamagedRange(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A place of a source log that could not be read; ``start`` and ``end`` are log positions."""

    store: str
    kind: str
    start: int
    end: int
    detail: str


class CompactSummary(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a compaction did.

    Attributes:
        is_new: False: the source had nothing new, so nothing was written.
        generation: number of the published folder.
        messages_read: records read by this run, of the sources.
        messages_kept, bytes_kept: of the output.
        files_written, files_linked: of logs; linked ones are those of the generation before.
        keyless_dropped: messages that the output lacks since they have no key.
        damage_count: damaged places of the sources; ``damage`` lists the first ones.
        topics: the compacted ones.
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
    damage: tuple[DamagedRange, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """JSON values, named in camelCase."""
        table: dict[str, Any] = msgspec.to_builtins(self)
        return table
