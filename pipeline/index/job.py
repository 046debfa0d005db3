"""The job ``index``: builds consume queues, key index, time index and a Parquet copy of a log."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from rewindmq.broker.store.layout.time_index import FOLDER as TIME_FOLDER
from rewindmq.broker.store.layout.time_index import POSITION_FILE, TimeIndexPosition
from rewindmq.pipeline.engines.runner import engine_of
from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.files import open_files
from rewindmq.pipeline.index.index_plan import plan_index_files, previous_index
from rewindmq.pipeline.index.key_index import INDEX_FOLDER, EntryRun, write_index_files
from rewindmq.pipeline.index.options import DamagedRange, IndexOptions, IndexSummary, QueueGap
from rewindmq.pipeline.index.queue_files import QUEUE_FOLDER, kept_files, link_file
from rewindmq.pipeline.index.queues import DEFAULT_FILE_BYTES, QueueFilesPlan, QueueSummary, write_pieces
from rewindmq.pipeline.index.scan import (
    PARQUET_FOLDER,
    IndexScanPlan,
    PartFindings,
    damage_of,
    read_pieces,
    scan,
    split,
)
from rewindmq.pipeline.output.identity import RecordIdentity, check_same_log, ends_a_record, identify
from rewindmq.pipeline.output.output import JobOutput, read_manifest
from rewindmq.pipeline.snapshot.snapshot import StoreSnapshot, take_snapshot
from rewindmq.pipeline.spark.progress import Progress, no_progress

if TYPE_CHECKING:
    from rewindmq.pipeline.engines.engine import Engine
    from rewindmq.pipeline.engines.runner import Runner

JOB: Final = "index"
_DEFAULTS: Final = IndexOptions()
# Key among the options of a manifest.
QUEUE_FILE_BYTES: Final = "mappedFileSizeConsumeQueue"


def build_index(
    runner: Runner,
    store: str | Path,
    out: str | Path,
    options: IndexOptions = _DEFAULTS,
    progress: Progress = no_progress,
) -> IndexSummary:
    """Index a store, or the part of it that is new since an earlier run into the same output.

    Args:
        runner: a Spark session, or the local engine.
        store: directory or URI of the store; the job only reads it, and a broker may run on it.
        out: directory or URI of the output; ``docs/pipeline/index.md`` describes its files.
        progress: called with each step as it begins.

    Raises:
        PipelineError: the store is missing, empty or not the one indexed before, or the output is another
            job's.
    """
    options.check()
    snapshot = take_snapshot(store)
    if not snapshot.segments:
        raise PipelineError(f"{snapshot.location} has no messages: its commit log is empty")
    options, output = _open_output(snapshot, out, options)
    try:
        return _IndexRun(engine_of(runner), snapshot, output, options, progress).run()
    except OSError as error:
        place = error.filename or output.root
        raise PipelineError(f"cannot use {place}: {error.strerror or error}") from None


def _open_output(
    snapshot: StoreSnapshot, out: str | Path, options: IndexOptions
) -> tuple[IndexOptions, JobOutput]:
    """Return the output, and the options with the size of consume queue files filled in."""
    files, root = open_files(out)
    published = read_manifest(files, root)
    size = options.consume_queue_file_bytes
    if size is None and published is not None and published.job == JOB:
        size = published.options[QUEUE_FILE_BYTES]
    size = _queue_file_bytes(snapshot) if size is None else size
    settings = {
        "maxHashSlotNum": options.max_hash_slot_num,
        "maxIndexNum": options.max_index_num,
        QUEUE_FILE_BYTES: size,
        "messageDelayLevel": options.message_delay_level,
    }
    resolved = msgspec.structs.replace(options, consume_queue_file_bytes=size)
    return resolved, JobOutput(out, JOB, settings)


def _queue_file_bytes(snapshot: StoreSnapshot) -> int:
    sizes = (file.size for queue in snapshot.queues() for file in queue.files if file.size)
    size = next(sizes, DEFAULT_FILE_BYTES)
    IndexOptions(consume_queue_file_bytes=size).check()
    return size


class _IndexRun:
    """One run. It skips finished steps; their files stay in the draft."""

    def __init__(
        self,
        engine: Engine,
        snapshot: StoreSnapshot,
        output: JobOutput,
        options: IndexOptions,
        progress: Progress,
    ) -> None:
        self._engine = engine
        self._snapshot = snapshot
        self._output = output
        self._files = output.files
        self._options = options
        self._progress = progress
        before = output.published
        self._previous = None if before is None else output.published_folder()
        self._log_begin, self._read_until = snapshot.begin, snapshot.begin
        self._last: RecordIdentity | None = None
        if before is not None:
            self._log_begin = max(int(before.source[0]["begin"]), snapshot.begin)
            self._read_until = int(before.source[0]["end"])
            self._last = RecordIdentity.from_json(before.facts["last"])

    def run(self) -> IndexSummary:
        """Do the steps that an interrupted run has not finished, and publish."""
        output, snapshot = self._output, self._snapshot
        output.settle()
        before = output.published
        if self._last is not None:
            check_same_log(snapshot, self._last, output.root)
        if before is not None and (self._log_begin, snapshot.end) == _range(before.source[0]):
            return IndexSummary(
                output=output.root,
                is_new=False,
                generation=before.generation,
                log_begin=self._log_begin,
                log_end=snapshot.end,
                index_files=before.facts["indexFiles"],
                parquet_files=before.facts["parquetFiles"],
            )
        source = self._begin()
        self._log_begin, end = _range(source)
        parts = self._scan(end)
        queues = self._write_queues(parts)
        index = self._write_index(parts)
        rest = self._finish_draft(parts)
        facts = {"last": rest["last"], "indexFiles": rest["indexFiles"], "parquetFiles": rest["parquetFiles"]}
        manifest = output.publish([source], facts)
        return self._summary(manifest.generation, end, parts, queues, {**index, **rest})

    def _begin(self) -> dict[str, Any]:
        """Return the source to read: the interrupted run's, if the log still has what that run read."""
        output, snapshot = self._output, self._snapshot
        fresh = {"location": snapshot.location, "begin": self._log_begin, "end": snapshot.end}
        (source,) = output.begin([fresh])
        if not snapshot.begin <= source["end"] <= snapshot.end or not self._is_still_there(source["end"]):
            output.discard()
            (source,) = output.begin([fresh])
        return source

    def _is_still_there(self, end: int) -> bool:
        """Whether the log still has what an interrupted run read, or planned to read, up to ``end``."""
        found = self._output.step("scan")
        if found is None:
            # After a crash of the broker, other messages may be in the place of the log's last ones.
            return ends_a_record(self._snapshot, end)
        last = RecordIdentity.from_json(found["last"])
        return last is None or identify(self._snapshot, last.position) == last

    def _scan(self, end: int) -> list[PartFindings]:
        output = self._output
        found = output.step("scan")
        if found is None:
            parts = split(self._snapshot.cut(end), max(self._read_until, self._snapshot.begin))
            self._progress("reading the log")
            plan = IndexScanPlan(
                self._snapshot.files,
                self._files,
                output.folder("scan"),
                f"{output.draft}/{PARQUET_FOLDER}",
                self._options.message_delay_level,
            )
            scanned = scan(self._engine, plan, parts)
            newest = max(part.last_position for part in scanned) if scanned else -1
            last = self._last if newest < 0 else identify(self._snapshot, newest)
            found = output.finish("scan", {"parts": scanned, "last": last})
        return [PartFindings(*part) for part in found["parts"]]

    def _write_queues(self, parts: list[PartFindings]) -> Mapping[str, Any]:
        output = self._output
        found = output.step("queues")
        if found is None:
            self._progress("writing consume queues and the time index")
            names = [part.name for part in parts if part.queue_entries]
            written = self._write_pieces(names, _ended(parts))._asdict() if names else {}
            found = output.finish("queues", written)
        return found

    def _write_pieces(self, names: list[str], ended: Mapping[str, int]) -> QueueSummary:
        size = self._options.consume_queue_file_bytes
        assert size is not None
        plan = QueueFilesPlan(
            self._files,
            self._output.draft,
            size,
            previous=self._previous,
            log_begin=self._log_begin,
            ended=ended,
        )
        pieces = read_pieces(self._engine, self._files, self._output.folder("scan"), names)
        return write_pieces(pieces, plan)

    def _write_index(self, parts: list[PartFindings]) -> Mapping[str, Any]:
        output, options = self._output, self._options
        found = output.step("index")
        if found is None:
            self._progress("writing the key index")
            runs = [
                EntryRun(f"{output.folder('scan')}/{part.name}.index-entries", 0, part.index_entries)
                for part in parts
            ]
            before = previous_index(self._files, self._previous, options.max_index_num, self._log_begin)
            target = f"{output.draft}/{INDEX_FOLDER}"
            slots, entries = options.max_hash_slot_num, options.max_index_num
            plans = plan_index_files(self._files, runs, target, slots, entries, before)
            written = write_index_files(self._engine, plans)
            kept = before.kept if before.unfinished is None or plans else (*before.kept, before.unfinished)
            for path in kept:
                self._files.link(path, f"{target}/{path.rpartition('/')[2]}")
            found = {
                "indexBytes": written,
                "indexLinked": len(kept),
                "indexFiles": len(self._files.list(target)),
            }
            found = output.finish("index", found)
        return found

    def _finish_draft(self, parts: list[PartFindings]) -> Mapping[str, Any]:
        """Link unchanged files, and record the source of the time index."""
        output = self._output
        found = output.step("rest")
        if found is None:
            linked = self._link_parquet() + self._link_queues(_ended(parts))
            scanned = output.step("scan")
            assert scanned is not None
            last = RecordIdentity.from_json(scanned["last"])
            position = TimeIndexPosition(begin=0, end=0, last=-1, last_store_timestamp=-1)
            if last is not None:
                position = TimeIndexPosition(
                    begin=self._log_begin,
                    end=last.end,
                    last=last.position,
                    last_store_timestamp=last.store_timestamp,
                )
            self._files.publish(f"{output.draft}/{TIME_FOLDER}/{POSITION_FILE}", position.to_json())
            parquet = self._files.list(f"{output.draft}/{PARQUET_FOLDER}")
            found = {"linked": linked, "last": last, "parquetFiles": len(parquet)}
            index_files = len(self._files.list(f"{output.draft}/{INDEX_FOLDER}"))
            found = output.finish("rest", {**found, "indexFiles": index_files})
        return found

    def _link_parquet(self) -> int:
        if self._previous is None:
            return 0
        files, folder = self._files, f"{self._previous}/{PARQUET_FOLDER}"
        names = [entry.name for entry in files.list(folder)]
        # The records of a file end where the next file's begin.
        ends = [int(name.partition(".")[0]) for name in names[1:]]
        expired = sum(end <= self._log_begin for end in ends)
        for name in names[expired:]:
            files.link(f"{folder}/{name}", f"{self._output.draft}/{PARQUET_FOLDER}/{name}")
        return len(names) - expired

    def _link_queues(self, ended: Collection[str]) -> int:
        """Link queues without new entries, except those of deleted topics."""
        linked = 0
        if self._previous is None:
            return linked
        files, draft = self._files, self._output.draft
        folder = f"{self._previous}/{QUEUE_FOLDER}"
        for topic in files.list(folder):
            if topic.name in ended:
                continue
            for queue in files.list(f"{folder}/{topic.name}"):
                name = f"{topic.name}/{queue.name}"
                if files.entry(f"{draft}/{QUEUE_FOLDER}/{name}") is None:
                    for file in kept_files(files, f"{folder}/{name}", self._log_begin):
                        link_file(files, self._previous, draft, name, file)
                        linked += 1
        return linked

    def _summary(
        self,
        generation: int,
        end: int,
        parts: list[PartFindings],
        queues: Mapping[str, Any],
        files: Mapping[str, Any],
    ) -> IndexSummary:
        torn = [self._snapshot.torn] if self._snapshot.torn and end == self._snapshot.end else []
        return IndexSummary(
            output=self._output.root,
            is_new=True,
            generation=generation,
            log_begin=self._log_begin,
            log_end=end,
            log_bytes_read=sum(part.log_bytes for part in parts),
            messages=sum(part.records for part in parts),
            queues=queues.get("queues", 0),
            queue_entries=queues.get("entries", 0),
            index_entries=sum(part.index_entries for part in parts),
            index_files=files["indexFiles"],
            parquet_files=files["parquetFiles"],
            bytes_written=sum(part.parquet_bytes for part in parts)
            + queues.get("bytes_written", 0)
            + files["indexBytes"],
            files_linked=queues.get("files_linked", 0) + files["indexLinked"] + files["linked"],
            repeated=queues.get("repeated", 0),
            passed_over=queues.get("passed_over", 0),
            gap_count=queues.get("gap_count", 0),
            damage_count=sum(part.damage_count for part in parts) + len(torn),
            gaps=tuple(
                QueueGap(topic=topic, queue_id=queue_id, expected=number, found=found, physical_offset=at)
                for topic, queue_id, number, found, at in queues.get("gaps", ())
            ),
            damage=tuple(
                DamagedRange(kind=place.kind, start=place.start, end=place.end, detail=place.detail)
                for place in (*damage_of(parts), *torn)
            ),
        )


def _ended(parts: Iterable[PartFindings]) -> dict[str, int]:
    """Return the topics that were deleted, with the log positions of their last deletions."""
    return {topic: position for part in parts for topic, position in part.ended.items()}


def _range(source: Mapping[str, Any]) -> tuple[int, int]:
    return int(source["begin"]), int(source["end"])
