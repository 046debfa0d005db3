"""The job ``compact``: compacts one store, or the stores of a cluster's brokers, into a new output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rewindmq.pipeline.compact import translate
from rewindmq.pipeline.compact.former import is_as_published
from rewindmq.pipeline.compact.layout import shape_of
from rewindmq.pipeline.compact.options import (
    CompactOptions,
    CompactSummary,
)
from rewindmq.pipeline.compact.store_run import GROUPS_STEP, StoreRun, StoreTask, step_name
from rewindmq.pipeline.compact.summary import summarize
from rewindmq.pipeline.compact.topics import TopicRules, choose_topics
from rewindmq.pipeline.engines.runner import engine_of
from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.files import LocalFiles
from rewindmq.pipeline.output.identity import RecordIdentity, check_same_log, ends_a_record, identify
from rewindmq.pipeline.output.output import JobOutput
from rewindmq.pipeline.snapshot.snapshot import StoreSnapshot, labelled, take_snapshot
from rewindmq.pipeline.spark.progress import Progress, no_progress

if TYPE_CHECKING:
    from rewindmq.pipeline.engines.engine import Engine
    from rewindmq.pipeline.engines.runner import Runner

JOB: Final = "compact"
_DEFAULTS: Final = CompactOptions()
Locations = str | Path | Sequence[str | Path]


def prepare(stores: Locations, out: str | Path, options: CompactOptions = _DEFAULTS) -> None:
    """Check stores, output and options without Spark.

    Raises:
        PipelineError: as ``compact``.
    """
    _Compaction(stores, out, options)


def compact(
    runner: Runner,
    stores: Locations,
    out: str | Path,
    options: CompactOptions = _DEFAULTS,
    progress: Progress = no_progress,
) -> CompactSummary:
    """Compact a store, or continue an earlier compaction with what is new in the store's log.

    Args:
        runner: a Spark session, or the local engine.
        stores: directory or URI of a store, or several; the job only reads them, and brokers may run on
            them.
        out: directory or URI of the output; ``docs/pipeline/compact.md`` describes its files.
        progress: called with each step as it begins.

    Raises:
        PipelineError: a store is missing, a topic is unknown, or a log is not the one compacted before; the
            output is another job's or was made with other options; an option is invalid.
    """
    run = _Compaction(stores, out, options)
    try:
        return run.run(engine_of(runner), progress)
    except OSError as error:
        place = error.filename or run.output.root
        raise PipelineError(f"cannot use {place}: {error.strerror or error}") from None


class _Compaction:
    """One run. It decides what to read from each store; ``StoreRun`` does the steps."""

    def __init__(self, stores: Locations, out: str | Path, options: CompactOptions) -> None:
        options.check()
        paths = [stores] if isinstance(stores, str | Path) else list(stores)
        self._options = options
        # Read offsets before the log's end: on a live store, later offsets could lie beyond that end.
        self._configurations = [translate.read_configuration(take_snapshot(path)) for path in paths]
        self._snapshots = labelled([take_snapshot(path) for path in paths])
        for snapshot in self._snapshots:
            if not snapshot.segments:
                raise PipelineError(f"{snapshot.location} has no messages: its commit log is empty")
        self._folders = _folders(self._snapshots)
        tables = [configuration[translate.TOPICS] for configuration in self._configurations]
        self._known = {topic for table in tables for topic in table.get("topicConfigTable", {})}
        self._known.update(topic for snapshot in self._snapshots for topic in _queue_topics(snapshot))
        self._chosen = choose_topics(options.topics, tables, self._known)
        self.output = JobOutput(out, JOB, options.to_json())
        self._facts = self._former_facts()
        for snapshot, facts in zip(self._snapshots, self._facts, strict=True):
            last = None if facts is None else RecordIdentity.from_json(facts["last"])
            if last is not None:
                check_same_log(snapshot, last, self.output.root)

    def _former_facts(self) -> list[Mapping[str, Any] | None]:
        """Return the manifest's facts about each store; None on the first run."""
        published = self.output.published
        if published is None:
            return [None] * len(self._snapshots)
        before = [source["location"] for source in published.source]
        now = [_place(snapshot) for snapshot in self._snapshots]
        if before != now:
            raise PipelineError(
                f"{self.output.root} was made from {', '.join(before)}, not from {', '.join(now)};"
                " choose another output"
            )
        return list(published.facts["stores"])

    def run(self, engine: Engine, progress: Progress) -> CompactSummary:
        """Do the unfinished steps, publish, and return the summary."""
        output, options = self.output, self._options
        output.settle()
        published = output.published
        if published is not None and self._has_nothing_new():
            return CompactSummary(
                output=output.root,
                format=options.format,
                scope=options.scope,
                is_new=False,
                generation=published.generation,
            )
        tasks = self._begin()
        found = [StoreRun(engine, output, options, task, progress).run() for task in tasks]
        self._require_chosen(found)
        progress("publishing")
        stores = list(zip(tasks, found, strict=True))
        facts = [_facts(task, facts) for task, facts in stores]
        manifest = output.publish([self._range(task) for task in tasks], {"stores": facts})
        return summarize(output.root, options, manifest.generation, stores)

    def _has_nothing_new(self) -> bool:
        """Whether logs, configurations and files are unchanged since the output was made."""
        assert self.output.published is not None
        ends = [source["end"] for source in self.output.published.source]
        digests = [facts.get("configuration") for facts in self._facts if facts is not None]
        return (
            ends == [snapshot.end for snapshot in self._snapshots]
            and digests == [translate.digest_of(configuration) for configuration in self._configurations]
            and not any(self._why_not_continued(number) for number in range(len(ends)))
        )

    def _begin(self) -> list[StoreTask]:
        """Return what to read from each store: the same as an interrupted run, if that is still possible."""
        tasks = [self._task(number) for number in range(len(self._snapshots))]
        wanted = [{**_source(task), "configuration": task.configuration} for task in tasks]
        agreed = self.output.begin(wanted)
        if not all(map(self._is_still_there, tasks, agreed, wanted)):
            self.output.discard()
            agreed = self.output.begin(wanted)
        return [
            task._replace(
                snapshot=task.snapshot.cut(source["end"]),
                configuration=source["configuration"],
                rules=self._rules(source["configuration"]),
            )
            for task, source in zip(tasks, agreed, strict=True)
        ]

    def _is_still_there(self, task: StoreTask, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
        """Whether the log still has what an interrupted run read.

        A broker's crash may have cut the log, and other messages may be in that place now.
        """
        later = {"end": 0, "configuration": {}}
        if {**old, **later} != {**new, **later} or not new["from"] <= old["end"] <= new["end"]:
            return False
        found = self.output.step(step_name(task.number, GROUPS_STEP))
        if found is None:
            return ends_a_record(task.snapshot, old["end"])
        last = RecordIdentity.from_json(found["last"])
        return last is None or identify(task.snapshot, last.position) == last

    def _rules(self, configuration: translate.Configuration) -> TopicRules:
        delays = translate.delay_offsets(configuration[translate.DELAY_OFFSETS])
        return TopicRules(self._options, self._chosen, delays)

    def _task(self, number: int) -> StoreTask:
        snapshot, folder, facts = self._snapshots[number], self._folders[number], self._facts[number]
        configuration = self._configurations[number]
        rules = self._rules(configuration)
        shape = shape_of(self._options, snapshot.segment_bytes)
        from_start = StoreTask(number, folder, snapshot, configuration, snapshot.begin, rules, shape, "", {})
        if facts is None:
            return from_start
        before = self._published_range(number)
        reason = self._why_not_continued(number)
        if not reason:
            former = self.output.published_folder() + folder
            return from_start._replace(begin=before["end"], former=former, former_facts=facts)
        if snapshot.begin > before["begin"]:
            raise PipelineError(
                f"cannot continue {self.output.root}, {reason}; and cannot make it again, because the log"
                f" of {snapshot.location} no longer has all messages that it was made from; choose another"
                " output"
            )
        return from_start

    def _why_not_continued(self, number: int) -> str:
        """Return why the published output cannot be continued; "" if it can."""
        facts = self._facts[number]
        assert facts is not None
        shape = shape_of(self._options, self._snapshots[number].segment_bytes)
        if facts["chosen"] != _as_list(self._chosen):
            return "because this run compacts other topics"
        if facts["fileBytes"] != shape.bytes:
            return "because the size of the source's segments changed"
        folder = self.output.published_folder() + self._folders[number]
        if not is_as_published(self.output.files, folder, shape.bytes):
            return "because its files have changed, for example by a broker that ran on them"
        return ""

    def _published_range(self, number: int) -> Mapping[str, Any]:
        assert self.output.published is not None
        return self.output.published.source[number]

    def _range(self, task: StoreTask) -> dict[str, Any]:
        """Return the part of the log in the output, from this run and the runs that it continues."""
        begin = self._published_range(task.number)["begin"] if task.former else task.begin
        return {**_source(task), "begin": begin}

    def _require_chosen(self, found: list[dict[str, Any]]) -> None:
        """Check the chosen topics after the scan: without configuration, only the scan finds the topics."""
        seen = {topic for facts in found for topic, _, _ in facts["ends"]}
        for topic in self._options.topics:
            if topic not in seen | self._known:
                self.output.discard()
                raise PipelineError(f"unknown topic {topic}; known: {', '.join(sorted(seen))}")


def _facts(task: StoreTask, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest's facts about a store."""
    return {
        "folder": task.folder,
        "chosen": _as_list(task.rules.chosen),
        "configuration": translate.digest_of(task.configuration),
        "fileBytes": task.shape.bytes,
        "last": found["last"],
        "newestStoreTimestamp": found["newestStoreTimestamp"],
        "ends": found["ends"],
        "counts": found["counts"],
    }


def _source(task: StoreTask) -> dict[str, Any]:
    return {
        "location": _place(task.snapshot),
        "chosen": _as_list(task.rules.chosen),
        "from": task.begin,
        "end": task.snapshot.end,
    }


def _place(snapshot: StoreSnapshot) -> str:
    """Return a store's normalised path, its name in a manifest."""
    return snapshot.root if isinstance(snapshot.files, LocalFiles) else snapshot.location


def _folders(snapshots: list[StoreSnapshot]) -> list[str]:
    """Return each store's folder in the output: the output itself, or a named folder for each of several."""
    if len(snapshots) == 1:
        return [""]
    return [f"/{snapshot.name}" for snapshot in snapshots]


def _queue_topics(snapshot: StoreSnapshot) -> list[str]:
    return [entry.name for entry in snapshot.files.list(f"{snapshot.root}/consumequeue")]


def _as_list(topics: frozenset[str] | None) -> list[str] | None:
    return None if topics is None else sorted(topics)
