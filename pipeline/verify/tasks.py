"""Tasks of a comparison: parts of a log, consume queue files, index files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from rewindmq.broker.store.layout.index import FIRST_ENTRY
from rewindmq.broker.store.layout.time_index import TIME_BYTES
from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.snapshot.queue_view import QueueView
from rewindmq.pipeline.snapshot.snapshot import CQ_ENTRY_BYTES, PRE_BLANK_SIZE, StoreSnapshot
from rewindmq.pipeline.verify.report import Tally

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_PART_BYTES: Final = 64 << 20
# Small files share a task.
_TASK_BYTES: Final = 16 << 20

Views = Mapping[tuple[str, int], QueueView]


class Task(Protocol):
    """A task that yields evidence; pickles."""

    def run(self) -> Iterator[pa.RecordBatch]:
        """Yield rows of ``evidence.SCHEMA``."""


class Work(NamedTuple):
    """Tasks, and the number of bytes that each reads."""

    tasks: Sequence[Task]
    weights: Sequence[int]


class Subject(NamedTuple):
    """The files that are compared with a log.

    Attributes:
        number: index of the store in the tally.
        log: the store with the commit log.
        made: the store with queues and index: the store itself, or an output treated as a store.
        views: the queues of ``made``.
        times: folder of a time index; "" if there is none.
        is_copied: whether each record must be in a Parquet copy.
        slots: maxHashSlotNum; 0 to detect it.
    """

    number: int
    log: StoreSnapshot
    made: StoreSnapshot
    views: Views
    times: str = ""
    is_copied: bool = False
    slots: int = 0


def list_work(subject: Subject, tally: Tally) -> Work:
    """Return the tasks of a comparison."""
    tasks: list[Task] = []
    weights: list[int] = []
    for task, weight in _tasks(subject, tally):
        tasks.append(task)
        weights.append(weight)
    return Work(tasks, weights)


def _tasks(subject: Subject, tally: Tally) -> Iterator[tuple[Task, int]]:
    from rewindmq.pipeline.verify.log_scan import LogTask

    indexes = list(_index_tasks(subject, tally))
    yield from ((task, weight) for task, weight, _ in indexes)
    covered = [bounds for _, _, bounds in indexes]
    indexed = (covered[0][0], covered[-1][1]) if covered else (0, 0)
    topics = frozenset(topic for topic, _ in subject.views)
    dispatched = max(map(_dispatched, subject.views.values()), default=0)
    log = subject.log
    following = [*log.segments[1:], None]
    for segment, behind in zip(log.segments, following, strict=True):
        for start in range(segment.base, segment.end, _PART_BYTES):
            stop = min(start + _PART_BYTES, segment.end)
            task = LogTask(
                subject.number,
                log.files,
                segment,
                start,
                stop,
                behind,
                topics,
                dispatched,
                indexed,
                subject.is_copied,
            )
            yield task, stop - start
    for view in subject.views.values():
        yield from _queue_tasks(subject, view)


def _dispatched(view: QueueView) -> int:
    entry = view.entry(view.max_offset - 1)
    return 0 if entry is None or entry[1] == PRE_BLANK_SIZE else entry[0] + entry[1]


def _queue_tasks(subject: Subject, view: QueueView) -> Iterator[tuple[Task, int]]:
    from rewindmq.pipeline.verify.queue_scan import CHUNK_ENTRIES, QueueTask

    made = subject.made
    files = made.queue(view.topic, view.queue_id).files
    label = f"{view.topic}/{view.queue_id}"
    used = [file for file in files if file.size and file.base < view.max_offset * CQ_ENTRY_BYTES]
    before = None
    for file in files:
        is_last = not used or file.base >= used[-1].base
        for first in range(0, file.size // CQ_ENTRY_BYTES, CHUNK_ENTRIES):
            times = f"{subject.times}/{label}/{_time_base(file.base):020d}" if subject.times else ""
            task = QueueTask(
                subject.number,
                made.files,
                label,
                file,
                first,
                before,
                is_last,
                made.begin,
                made.end,
                times,
            )
            yield task, min(file.size, CHUNK_ENTRIES * CQ_ENTRY_BYTES)
        before = file


def _time_base(entry_base: int) -> int:
    """Return the base of the time index's file for a consume queue file."""
    return entry_base // CQ_ENTRY_BYTES * TIME_BYTES


def _index_tasks(subject: Subject, tally: Tally) -> Iterator[tuple[Task, int, tuple[int, int]]]:
    from rewindmq.pipeline.index_files.reader import IndexReader
    from rewindmq.pipeline.verify.index_scan import IndexTask

    number, snapshot = subject.number, subject.made
    for entry in snapshot.index_files():
        path = f"{snapshot.root}/index/{entry.name}"
        try:
            index = IndexReader(snapshot.files, path, entry.size, subject.slots)
        except PipelineError as error:
            tally.add(number, "index file", 1, 1, [(0, str(error))])
            continue
        if index.stop == FIRST_ENTRY:
            tally.add(number, "index file", 1)
            continue
        task = IndexTask(number, snapshot.files, path, entry.name, index.slots, snapshot.begin, snapshot.end)
        yield task, entry.size, (index.header.begin_phy_offset, index.header.end_phy_offset)


def compare(
    spark: SparkSession, stores: Sequence[Work], others: Sequence[DataFrame] = ()
) -> list[Sequence[Any]]:
    """Compare; return a tally's rows, one per check, store and task of the last stage.

    Args:
        others: further evidence.
    """
    from rewindmq.pipeline.spark.arrow_map import map_in_arrow
    from rewindmq.pipeline.verify.judge import RESULT, judge

    rows = gather(spark, stores)
    if rows is None:
        return []
    for other in others:
        rows = rows.unionByName(other)
    kinds = rows.repartition("store", "position").sortWithinPartitions("store", "position", "kind")
    return [tuple(row) for row in map_in_arrow(kinds, judge, RESULT).collect()]


def gather(spark: SparkSession, stores: Sequence[Work]) -> DataFrame | None:
    """Return the evidence of all tasks; None if there is none."""
    from rewindmq.pipeline.spark.arrow_map import map_in_arrow
    from rewindmq.pipeline.verify.evidence import SCHEMA

    groups = _grouped(
        (task, weight) for store in stores for task, weight in zip(store.tasks, store.weights, strict=True)
    )
    if not groups:
        return None
    numbers = spark.range(0, len(groups), 1, len(groups))
    return map_in_arrow(numbers.toDF("number"), _runner(groups), SCHEMA)


def _grouped(tasks: Iterable[tuple[Task, int]]) -> list[list[Task]]:
    groups: list[list[Task]] = []
    room = 0
    for task, weight in tasks:
        if not groups or weight > room:
            groups.append([])
            room = _TASK_BYTES
        groups[-1].append(task)
        room -= weight
    return groups


def _runner(
    groups: Sequence[Sequence[Task]],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for task in groups[number]:
                    yield from task.run()

    return run
