"""Plans the parts of a store that a query reads."""

from __future__ import annotations

from typing import NamedTuple

from rewindmq.pipeline.counters import CountingFiles
from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.files import open_files
from rewindmq.pipeline.index_files.reader import IndexReader, index_files
from rewindmq.pipeline.options import ReadOptions
from rewindmq.pipeline.output.output import read_manifest
from rewindmq.pipeline.pushdown.keys import of_keys
from rewindmq.pipeline.pushdown.queues import GAP_BYTES, of_queues
from rewindmq.pipeline.pushdown.ranges import Ranges, intersection, union
from rewindmq.pipeline.pushdown.times import stored_within
from rewindmq.pipeline.selection import Selection
from rewindmq.pipeline.snapshot.snapshot import StoreSnapshot


class MadeIndex(NamedTuple):
    """Consume queues and key index files outside the store, built by ``rewindmq pipeline index``.

    Attributes:
        root: folder with ``index/`` and ``consumequeue/``.
    """

    files: CountingFiles
    root: str


def open_index(options: ReadOptions) -> MadeIndex | None:
    """Open the option ``index``: an output of ``rewindmq pipeline index``, or a folder with ``index/`` in it.

    Raises:
        PipelineError: the folder contains no index files.
    """
    if not options.index_folder:
        return None
    opened, root = open_files(options.index_folder)
    files = CountingFiles(opened)
    manifest = read_manifest(files, root)
    folder = root if manifest is None else f"{root}/{manifest.folder}"
    if files.entry(f"{folder}/index") is None:
        raise PipelineError(f"there is no key index in {root}: give the OUT of 'rewindmq pipeline index'")
    return MadeIndex(files, folder)


def all_indexes(snapshot: StoreSnapshot, options: ReadOptions, made: MadeIndex | None) -> list[IndexReader]:
    """Return the index files that may cover this log: the store's own and those built by a job.

    Raises:
        PipelineError: an index file is invalid.
    """
    if options.index_folder is None:
        return []
    found = list(index_files(snapshot.files, f"{snapshot.root}/index", options.hash_slots))
    if made is not None:
        found += index_files(made.files, f"{made.root}/index", options.hash_slots)
    return found


def needed_ranges(
    snapshot: StoreSnapshot, selection: Selection, options: ReadOptions, made: MadeIndex | None
) -> Ranges:
    """Return the log positions between which matching records may begin.

    Raises:
        PipelineError: an index file is invalid.
    """
    if selection.is_empty:
        return []
    start = max(snapshot.begin, selection.positions.low)
    stop = min(snapshot.end, selection.positions.high + 1)
    if not selection.store_times.is_all and start < stop:
        begin, end = stored_within(snapshot, selection.store_times, options.clock_slack_ms)
        start, stop = max(start, begin), min(stop, end)
    ranges = union([(start, stop)])
    wanted = [*selection.keys, *([] if selection.unique_keys is None else [selection.unique_keys])]
    sources = [snapshot]
    if made is not None:
        sources.append(snapshot._replace(files=made.files, root=made.root))
    topics = selection.topics
    if topics is None and wanted and options.use_consume_queues:
        # The index stores a key only together with its topic.
        topics = frozenset(queue.topic for source in sources for queue in source.queues()).union(
            snapshot.config("topics.json").get("topicConfigTable", ())
        )
    if not ranges or not topics:
        return ranges
    indexes = all_indexes(snapshot, options, made) if wanted else []
    if indexes:
        for keys in wanted:
            ranges = intersection(ranges, of_keys(snapshot, indexes, topics, keys))
    elif selection.topics is not None and options.use_consume_queues:
        for source in sources:
            found = of_queues(snapshot, selection, start, stop, source)
            if found is not None:
                ranges = intersection(ranges, found)
                break
    return union(ranges, GAP_BYTES)
