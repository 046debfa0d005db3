"""Builds consume queues; each queue is one task's work, in the order of the log."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from rewindmq.broker.store.layout.queue_path import names_a_queue
from rewindmq.pipeline.engines.engine import Rows
from rewindmq.pipeline.files import Files
from rewindmq.pipeline.index.queue_files import GAPS_SHOWN, Gap, QueueWriter
from rewindmq.pipeline.index.queue_pieces import QUEUE_ENTRY, TIME

if TYPE_CHECKING:
    import pyarrow as pa

DEFAULT_FILE_BYTES: Final = 6_000_000


class QueueSummary(NamedTuple):
    """Counts of a build.

    Attributes:
        queues: queues with new entries.
        entries: entries added.
        files_linked: consume queue files linked from an earlier run.
        bytes_written: bytes used in the files written, including those copied from continued files.
        gap_count: places where queue offsets were not consecutive and entries were renumbered.
        gaps: the first of these places.
        repeated: records skipped because the queue already has their queue offset.
        passed_over: records whose topic or queue id cannot name a folder.
    """

    queues: int
    entries: int
    files_linked: int
    bytes_written: int
    gap_count: int
    gaps: tuple[Gap, ...]
    repeated: int
    passed_over: int


class QueueFilesPlan(NamedTuple):
    """Target and size of the files; pickles.

    Attributes:
        target: folder for ``consumequeue/`` and ``timeindex/``.
        file_bytes: size of a consume queue file, a multiple of the entry size.
        previous: target folder of an earlier run, whose queues are continued.
        log_begin: files of ``previous`` whose records all lie before it are left out.
        ended: topics that were deleted since ``previous``, with the log position of their last deletion: no
            earlier record has an entry.
    """

    files: Files
    target: str
    file_bytes: int = DEFAULT_FILE_BYTES
    previous: str | None = None
    log_begin: int = 0
    ended: Mapping[str, int] = {}


def write_pieces(pieces: Rows, plan: QueueFilesPlan) -> QueueSummary:
    """Write ``consumequeue/`` and ``timeindex/`` from these pieces, in one job.

    Specification: docs/spec/store.md 4.1 to 4.4.

    Each worker holds the entries of one file in memory, besides the sort.

    A queue that begins at q > 0 starts with filler entries, as a broker writes them. If queue offsets are not
    consecutive, entries get consecutive numbers, as a broker numbers them, and the gap is reported.
    The mtime of a file is the store time of its last entry.

    Raises:
        PipelineError: a task failed.
    """
    by_queue = pieces.together(["topic", "queueId"], ["topic", "queueId", "physicalOffset"])
    rows = by_queue.map(_writer(plan), "found string").collect()
    return _summary([json.loads(text) for (text,) in rows])


def _summary(found: list[dict[str, Any]]) -> QueueSummary:
    def total(name: str) -> int:
        return sum(item[name] for item in found)

    gaps = tuple(Gap(*gap) for item in found for gap in item["gaps"])
    return QueueSummary(
        total("queues"),
        total("entries"),
        total("files_linked"),
        total("bytes_written"),
        total("gap_count"),
        tuple(sorted(gaps, key=lambda gap: gap.physical_offset))[:GAPS_SHOWN],
        total("repeated"),
        total("passed_over"),
    )


def _writer(plan: QueueFilesPlan) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        found = _write_queues(plan, batches)
        yield pa.RecordBatch.from_pydict({"found": [json.dumps(found)]})

    return write


def _write_queues(plan: QueueFilesPlan, batches: Iterator[pa.RecordBatch]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "queues": 0, "entries": 0, "files_linked": 0, "bytes_written": 0, "gap_count": 0, "gaps": [],
        "repeated": 0, "passed_over": 0,
    }  # fmt: skip
    for (topic, queue_id), rows in groupby(_rows(batches), key=lambda row: (row["topic"], row["queueId"])):
        if not names_a_queue(topic, queue_id):
            found["passed_over"] += sum(len(row["entries"]) // QUEUE_ENTRY.itemsize for row in rows)
            continue
        ended = plan.ended.get(topic)
        writer = QueueWriter(
            plan.files,
            plan.target,
            topic,
            queue_id,
            file_bytes=plan.file_bytes,
            previous=plan.previous if ended is None else None,
            log_begin=plan.log_begin,
        )
        for row in rows:
            entries, times = np.frombuffer(row["entries"], QUEUE_ENTRY), np.frombuffer(row["times"], TIME)
            first = 0 if ended is None else int(np.searchsorted(entries["position"], ended))
            if first < len(entries):
                writer.add(row["queueOffset"] + first, entries[first:], times[first:])
        writer.close()
        found["queues"] += writer.entries > 0
        found["entries"] += writer.entries
        found["files_linked"] += writer.files_linked
        found["bytes_written"] += writer.bytes_written
        found["repeated"] += writer.repeated
        found["gap_count"] += writer.gap_count
        found["gaps"] += writer.gaps[: GAPS_SHOWN - len(found["gaps"])]
    return found


def _rows(batches: Iterator[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    for batch in batches:
        for number in range(batch.num_rows):
            yield {
                name: column[number].as_py() for name, column in zip(batch.schema.names, batch, strict=True)
            }
