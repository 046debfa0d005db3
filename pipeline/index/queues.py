"""Consume queues built from what is known of messages, each queue by one task in the order of the log."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from rewindmq.broker.store.consume_queue_table import names_a_queue
from rewindmq.pipeline.arrow_map import map_in_arrow
from rewindmq.pipeline.files import Files
from rewindmq.pipeline.index.queue_files import GAPS_SHOWN, Gap, QueueWriter
from rewindmq.pipeline.index.queue_pieces import TIME, UNIT
from rewindmq.pipeline.spark_errors import in_one_line

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

DEFAULT_FILE_BYTES: Final = 6_000_000


class QueueSummary(NamedTuple):
    """What was built.

    Attributes:
        queues: those that got units.
        units: units added.
        files_linked: consume queue files of an earlier run that are files of this one.
        bytes_written: bytes used of the files written, with what was copied of files gone on with.
        gap_count: places where queue offsets do not follow one another, and units were renumbered.
        gaps: some of them.
        repeated: records passed over since their queue had a unit of their queue offset.
        passed_over: records of a topic or queue id that can name no folder.
    """

    queues: int
    units: int
    files_linked: int
    bytes_written: int
    gap_count: int
    gaps: tuple[Gap, ...]
    repeated: int
    passed_over: int


class QueuePlan(NamedTuple):
    """Where and how the files are written; pickles.

    Attributes:
        target: folder that gets ``consumequeue/`` and ``timeindex/``.
        file_bytes: size of a consume queue file, whole units.
        previous: folder as ``target``, of an earlier run, whose queues go on.
        log_begin: files of ``previous`` of which every record lies below it are left out.
    """

    files: Files
    target: str
    file_bytes: int = DEFAULT_FILE_BYTES
    previous: str | None = None
    log_begin: int = 0


def write_pieces(pieces: DataFrame, plan: QueuePlan) -> QueueSummary:
    """Write ``consumequeue/`` and ``timeindex/`` of these pieces, in one Spark job.

    Specification: docs/spec/store.md 4.1 to 4.4.

    Each worker needs memory for the units of one file, and for what Spark's sort keeps.

    A queue that begins at q > 0 gets filler units in front, as a broker makes them. Where queue offsets do
    not follow one another, units are numbered on as a broker does when it builds them, and that is told of.
    Files have the store time of their last unit as mtime.

    Raises:
        PipelineError: the job failed.
    """
    by_queue = pieces.repartition("topic", "queueId").sortWithinPartitions(
        "topic", "queueId", "physicalOffset"
    )
    with in_one_line():
        rows = map_in_arrow(by_queue, _writer(plan), "found string").collect()
    return _summary([json.loads(row.found) for row in rows])


def _summary(found: list[dict[str, Any]]) -> QueueSummary:
    def total(name: str) -> int:
        return sum(item[name] for item in found)

    gaps = tuple(Gap(*gap) for item in found for gap in item["gaps"])
    return QueueSummary(
        total("queues"),
        total("units"),
        total("files_linked"),
        total("bytes_written"),
        total("gap_count"),
        tuple(sorted(gaps, key=lambda gap: gap.physical_offset))[:GAPS_SHOWN],
        total("repeated"),
        total("passed_over"),
    )


def _writer(plan: QueuePlan) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        found = _write_queues(plan, batches)
        yield pa.RecordBatch.from_pydict({"found": [json.dumps(found)]})

    return write


def _write_queues(plan: QueuePlan, batches: Iterator[pa.RecordBatch]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "queues": 0, "units": 0, "files_linked": 0, "bytes_written": 0, "gap_count": 0, "gaps": [],
        "repeated": 0, "passed_over": 0,
    }  # fmt: skip
    for (topic, queue_id), rows in groupby(_rows(batches), key=lambda row: (row["topic"], row["queueId"])):
        if not names_a_queue(topic, queue_id):
            found["passed_over"] += sum(len(row["units"]) // UNIT.itemsize for row in rows)
            continue
        writer = QueueWriter(
            plan.files,
            plan.target,
            topic,
            queue_id,
            file_bytes=plan.file_bytes,
            previous=plan.previous,
            log_begin=plan.log_begin,
        )
        for row in rows:
            units, times = np.frombuffer(row["units"], UNIT), np.frombuffer(row["times"], TIME)
            writer.add(row["queueOffset"], units, times)
        writer.close()
        found["queues"] += 1
        found["units"] += writer.units
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
