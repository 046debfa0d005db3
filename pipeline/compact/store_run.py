"""The steps of compacting one store; an interrupted run resumes after its last finished step."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rewindmq.broker.store.layout.compaction import FOLDER, POSITION_FILE
from rewindmq.pipeline.compact import translate
from rewindmq.pipeline.compact.former import carried_rows, load_files, offset_map_path, save_files
from rewindmq.pipeline.compact.layout import FileShape, LayoutPlan, OutputFile, lay_out
from rewindmq.pipeline.compact.numbering import IN_QUEUES, check_numbers
from rewindmq.pipeline.compact.options import CompactOptions, Format, Keyless, Scope
from rewindmq.pipeline.compact.scan import CompactScanPlan, scan_log
from rewindmq.pipeline.compact.survivors import (
    MAY_BE_KEPT,
    QueueTotals,
    damaged_places,
    group,
    in_order,
    keys_of_topics,
    queue_totals,
    survivors,
)
from rewindmq.pipeline.compact.topics import TopicRules, Treatment
from rewindmq.pipeline.compact.writer import WritePlan, link_file, write_file
from rewindmq.pipeline.engines.engine import Engine, Rows
from rewindmq.pipeline.output.identity import RecordIdentity, identify
from rewindmq.pipeline.output.output import JobOutput
from rewindmq.pipeline.snapshot.snapshot import StoreSnapshot
from rewindmq.pipeline.spark.attempt import attempt_id
from rewindmq.pipeline.spark.progress import Progress

if TYPE_CHECKING:
    import pyarrow as pa

DAMAGE_SHOWN: Final = 100
_MOST_TASKS: Final = 1_000
GROUPS_STEP: Final = "groups"


class StoreTask(NamedTuple):
    """One store of a compaction.

    Attributes:
        number: index of the store among those of the run.
        folder: its folder in the output: "" or "/" and a name.
        snapshot: the store, cut at the position up to which this run reads.
        configuration: the store's, read before the log's end was determined, so that offsets of groups and
            deliveries never point beyond the snapshot.
        begin: first position to read.
        former: folder of the previous generation; "" if the run starts from nothing.
        former_facts: that generation's facts about this store, from its manifest.
    """

    number: int
    folder: str
    snapshot: StoreSnapshot
    configuration: translate.Configuration
    begin: int
    rules: TopicRules
    shape: FileShape
    former: str
    former_facts: Mapping[str, Any]


class StoreRun:
    """Compacts one store into the draft of an output."""

    def __init__(
        self,
        engine: Engine,
        output: JobOutput,
        options: CompactOptions,
        task: StoreTask,
        progress: Progress,
    ) -> None:
        self._engine = engine
        self._output = output
        self._options = options
        self._task = task
        self._progress = progress
        self._root = output.draft + task.folder
        self._is_store = options.format is Format.STORE

    def run(self) -> dict[str, Any]:
        """Do the unfinished steps; return the manifest's facts about the store."""
        found = self._group()
        self._select(found)
        laid = self._lay_out(found)
        written = self._write(laid)
        self._configure(found, laid)
        return {**found, "counts": laid["counts"], **written}

    def _step(self, name: str) -> str:
        return step_name(self._task.number, name)

    def _group(self) -> Mapping[str, Any]:
        """Read the new part of the log and find the newest message of each key."""
        output, name, task = self._output, self._step(GROUPS_STEP), self._task
        found = output.step(name)
        if found is not None:
            return found
        self._progress(f"reading the log of {task.snapshot.location}")
        keep_keyless = self._is_store and self._options.keyless is Keyless.KEEP
        plan = CompactScanPlan(task.snapshot.files, task.snapshot.segments, task.rules, keep_keyless)
        engine = self._engine
        rows = scan_log(engine, plan, task.begin, task.snapshot.end)
        if task.former:
            path = offset_map_path(task.former)
            offset_map = engine.saved(output.files, path, output.uri(path))
            carried = carried_rows(engine, offset_map, task.rules)
            both = "SELECT * FROM {rows} UNION ALL SELECT * FROM {carried}"
            rows = engine.query(both, rows=rows, carried=carried)
        self._save(name, group(engine, rows))
        groups = self._saved(name)
        totals = queue_totals(engine, groups)
        check_numbers(totals, self._former_ends())
        count, places = damaged_places(engine, groups, DAMAGE_SHOWN)
        last = max((total.last for total in totals), default=-1)
        former_last = RecordIdentity.from_json(task.former_facts.get("last"))
        newest = max((total.newest_store_timestamp for total in totals), default=0)
        return output.finish(
            name,
            {
                "totals": totals,
                "keys": keys_of_topics(engine, groups) if self._options.scope is Scope.TOPIC else {},
                "newestStoreTimestamp": max(newest, task.former_facts.get("newestStoreTimestamp", newest)),
                "last": identify(task.snapshot, last) if last >= 0 else former_last,
                "ends": self._ends(totals),
                "damageCount": count,
                "damage": places,
            },
        )

    def _ends(self, totals: list[QueueTotals]) -> list[list[Any]]:
        """Return one past the newest offset of each queue, including queues that only earlier runs read."""
        ends = self._former_ends()
        for total in totals:
            if total.kind in IN_QUEUES:
                queue = total.topic, total.queue_id
                ends[queue] = max(ends.get(queue, 0), total.newest + 1)
        return [[*queue, end] for queue, end in sorted(ends.items())]

    def _former_ends(self) -> dict[tuple[str, int], int]:
        return {(topic, queue_id): end for topic, queue_id, end in self._task.former_facts.get("ends", ())}

    def _select(self, found: Mapping[str, Any]) -> None:
        """Select the messages to keep, and sort them into the order of the output."""
        output, name = self._output, self._step("survivors")
        if output.step(name) is not None:
            return
        self._progress("selecting the messages to keep")
        groups = self._saved(self._step(GROUPS_STEP))
        totals, newest = totals_of(found), found["newestStoreTimestamp"]
        has_halves = any(total.kind is Treatment.HALF for total in totals)
        kept = survivors(self._engine, groups, self._options, newest, has_halves=has_halves)
        count = sum(total.groups for total in totals if total.kind in MAY_BE_KEPT)
        self._save(name, in_order(kept, count, is_store=self._is_store))
        output.finish(name, {})

    def _save(self, step: str, rows: Rows) -> None:
        folder = self._output.folder(step)
        rows.save(self._output.files, folder, self._output.uri(folder))

    def _saved(self, step: str) -> Rows:
        folder = self._output.folder(step)
        return self._engine.saved(self._output.files, folder, self._output.uri(folder))

    def _lay_out(self, found: Mapping[str, Any]) -> Mapping[str, Any]:
        """Assign every message its place."""
        output, name, task = self._output, self._step("layout"), self._task
        laid = output.step(name)
        if laid is not None:
            return laid
        self._progress("assigning positions")
        folder = output.folder(self._step("survivors"))
        sources = [item.name for item in output.files.list(folder) if item.name.endswith(".parquet")]
        consumed = task.configuration[translate.CONSUMER_OFFSETS]
        delivered = task.configuration[translate.DELAY_OFFSETS]
        offsets = translate.offsets_to_translate(consumed, delivered) if self._is_store else {}
        plan = LayoutPlan(
            output.files,
            tuple(f"{folder}/{source}" for source in sources),
            offset_map_path(self._root),
            self._options,
            task.shape,
            offsets,
        )

        def run(_number: int) -> Iterator[pa.RecordBatch]:
            import pyarrow as pa

            yield pa.RecordBatch.from_pydict({"found": [json.dumps(lay_out(plan))]})

        ((text,),) = self._engine.tasks(1, run, "found string").collect()
        laid = json.loads(text)
        save_files(output.files, self._root, [OutputFile(*fields) for fields in laid["files"]])
        if self._is_store:
            ends = {(topic, queue_id): end for topic, queue_id, end in found["ends"]}
            ranks = {(topic, queue_id, offset): rank for topic, queue_id, offset, rank in laid["ranks"]}
            to_new = translate.make_translation(ranks, ends)
            offsets_json = translate.translated_offsets(consumed, to_new)
            self._publish_config(translate.CONSUMER_OFFSETS, offsets_json)
            self._publish_config(translate.DELAY_OFFSETS, translate.translated_delays(delivered, to_new))
        return output.finish(name, {"files": laid["files"], "counts": laid["counts"]})

    def _write(self, laid: Mapping[str, Any]) -> Mapping[str, Any]:
        """Write the log files; link files that the previous generation has in the same form."""
        output, name, task = self._output, self._step("files"), self._task
        found = output.step(name)
        if found is not None:
            return found
        self._progress("writing the kept messages")
        for folder in ("commitlog", FOLDER):
            output.files.remove_tree(f"{self._root}/{folder}")
        output.files.make_folder(f"{self._root}/{'commitlog' if self._is_store else FOLDER}")
        plan = WritePlan(
            task.snapshot.files,
            task.snapshot.segments,
            output.files,
            self._root,
            task.former,
            offset_map_path(self._root),
            task.shape.bytes,
            0 if self._is_store else self._options.cq_file_bytes,
        )
        files = [OutputFile(*fields) for fields in laid["files"]]
        same = _identities(load_files(output.files, task.former)) if task.former else frozenset()
        fresh = [file for file in files if _identity(file) not in same]
        for file in files:
            if _identity(file) in same:
                link_file(plan, file)
        if fresh:
            self._write_files(plan, fresh)
        return output.finish(name, {"filesWritten": len(fresh), "filesLinked": len(files) - len(fresh)})

    def _write_files(self, plan: WritePlan, files: Sequence[OutputFile]) -> None:
        """Write the files; neighbouring files share a task if there are many."""
        share = len(files) // _MOST_TASKS + 1

        def run(number: int) -> Iterator[pa.RecordBatch]:
            for file in files[number * share : (number + 1) * share]:
                write_file(plan, file, attempt_id())
            yield from ()

        self._engine.tasks(-(-len(files) // share), run, "found string").collect()

    def _configure(self, found: Mapping[str, Any], laid: Mapping[str, Any]) -> None:
        output, name, task = self._output, self._step("config"), self._task
        if output.step(name) is not None:
            return
        self._progress("writing the configuration")
        config = task.configuration
        topics = config[translate.TOPICS]
        if not self._is_store:
            queues = _queue_counts(found["ends"], task.rules)
            topics = translate.marked_topics(topics, queues)
            offsets = translate.offsets_of(config[translate.CONSUMER_OFFSETS], queues)
            self._publish_config(translate.CONSUMER_OFFSETS, offsets)
            # Messages without a key count as well: their offsets must not be used again.
            positions = {
                f"{topic}_{queue_id}": end - 1
                for topic, queue_id, end in found["ends"]
                if task.rules.is_compacted(topic)
            }
            data = translate.to_json({"queueOffsetMap": positions})
            output.files.publish(f"{self._root}/{FOLDER}/{POSITION_FILE}", data)
        self._publish_config(translate.TOPICS, topics)
        self._publish_config(translate.GROUPS, config[translate.GROUPS])
        output.finish(name, {})

    def _publish_config(self, name: str, value: Mapping[str, Any]) -> None:
        if value:
            self._output.files.publish(f"{self._root}/config/{name}", translate.to_json(value))


def step_name(number: int, step: str) -> str:
    """Return the name of a step for the store with this number."""
    return f"{number}-{step}"


def totals_of(found: Mapping[str, Any]) -> list[QueueTotals]:
    """Return the sums by queue and kind that a store's first step found."""
    return [
        QueueTotals(topic, queue_id, Treatment(kind), *rest)
        for topic, queue_id, kind, *rest in found["totals"]
    ]


def _queue_counts(ends: list[list[Any]], rules: TopicRules) -> dict[str, int]:
    """Return the number of queues that each compacted topic needs."""
    counts = dict.fromkeys(rules.chosen or (), 1)
    for topic, queue_id, _ in ends:
        if rules.is_compacted(topic):
            counts[topic] = max(counts.get(topic, 1), queue_id + 1)
    return counts


def _identity(file: OutputFile) -> OutputFile:
    return file._replace(first_row=0)


def _identities(files: list[OutputFile]) -> frozenset[OutputFile]:
    return frozenset(_identity(file) for file in files)
