"""Tasks of a comparison: parts of a log, consume queue files, index files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from rewindmq.broker.store.layout.index import FIRST_ENTRY
from rewindmq.broker.store.layout.time_index import TIME_BYTES
from rewindmq.pipeline.engines.engine import Engine
from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.snapshot.queue_view import QueueView
from rewindmq.pipeline.snapshot.snapshot import CQ_ENTRY_BYTES, PRE_BLANK_SIZE, StoreSnapshot
from rewindmq.pipeline.verify.report import Tally

if TYPE_CHECKING:
    import pyarrow as pa

    from rewindmq.pipeline.verify.log_scan import QueueBegins

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
        copy: folder of a Parquet copy, which must have each record; "" if there is none.
        slots: maxHashSlotNum; 0 to detect it.
    """

    number: int
    log: StoreSnapshot
    made: StoreSnapshot
    views: Views
    times: str = ""
    copy: str = ""
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
    begins = _begins(subject.views)
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
                begins,
                dispatched,
                indexed,
                bool(subject.copy),
            )
            yield task, stop - start
    for view in subject.views.values():
        yield from _queue_tasks(subject, view)
    yield from _copy_tasks(subject)


def _begins(views: Views) -> QueueBegins:
    from rewindmq.pipeline.verify.log_scan import QueueBegins

    queues: dict[str, int] = {}
    topics: dict[str, int] = {}
    for (topic, queue_id), view in views.items():
        if view.first_offset < view.max_offset:
            begin = queues[f"{topic}/{queue_id}"] = view.life_begin
            topics[topic] = min(begin, topics.get(topic, begin))
    return QueueBegins(queues, topics)


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


def _copy_tasks(subject: Subject) -> Iterator[tuple[Task, int]]:
    from rewindmq.pipeline.verify.copy_scan import CopyTask

    if subject.copy:
        for entry in subject.made.files.list(subject.copy):
            yield CopyTask(subject.number, subject.made.files, f"{subject.copy}/{entry.name}"), entry.size


def compare(engine: Engine, stores: Sequence[Work]) -> list[Sequence[Any]]:
    """Compare; return a tally's rows, one per check, store and task of the last stage."""
    from rewindmq.pipeline.verify.evidence import SCHEMA
    from rewindmq.pipeline.verify.judge import RESULT, judge

    groups = _grouped(
        (task, weight) for store in stores for task, weight in zip(store.tasks, store.weights, strict=True)
    )
    if not groups:
        return []

    def run(number: int) -> Iterator[pa.RecordBatch]:
        for task in groups[number]:
            yield from task.run()

    rows = engine.tasks(len(groups), run, SCHEMA).together(
        ["store", "position"], ["store", "position", "kind"]
    )
    return list(rows.map(judge, RESULT).collect())


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
