"""Checks of input and output before Spark starts, so that errors appear at once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rewindmq.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from rewindmq.pipeline.snapshot.snapshot import StoreSnapshot


def look_at_stores(locations: Iterable[str]) -> list[StoreSnapshot]:
    """Take snapshots of the stores before Spark starts, so that a wrong path fails at once.

    Raises:
        PipelineError: Spark is missing, a location is not a store, or a store holds no message.
    """
    from rewindmq.pipeline.spark.session import require_spark

    require_spark()
    from rewindmq.pipeline.snapshot.snapshot import take_snapshot

    snapshots = [take_snapshot(location) for location in locations]
    for snapshot in snapshots:
        if snapshot.begin == snapshot.end:
            raise PipelineError(f"{snapshot.location} has no messages: its commit log is empty")
    return snapshots


def require_topics(snapshots: Sequence[StoreSnapshot], topics: Iterable[str]) -> None:
    """Check that a store has each topic.

    Raises:
        PipelineError: no store has the topic.
    """
    known = {queue.topic for snapshot in snapshots for queue in snapshot.queues()}
    for snapshot in snapshots:
        known |= set(snapshot.config("topics.json").get("topicConfigTable", {}))
    for topic in topics:
        # A store without queues and configuration does not list its topics: only reading the log finds them.
        if known and topic not in known:
            raise PipelineError(f"unknown topic {topic!r}; known: {', '.join(sorted(known))}")


def look_at_output(out: str, job: str, snapshots: Sequence[StoreSnapshot]) -> None:
    """Check the output before Spark starts; write nothing.

    Raises:
        PipelineError: the output is a file, holds other data or another job's output, holds a store, lies
            within a store, or cannot be written.
    """
    from rewindmq.pipeline.files import LocalFiles, open_files
    from rewindmq.pipeline.output.output import JobOutput

    files, root = open_files(out)
    if isinstance(files, LocalFiles):
        target = Path(root).resolve()
        for store in (Path(item.root).resolve() for item in snapshots if isinstance(item.files, LocalFiles)):
            if target == store or store in target.parents or target in store.parents:
                raise PipelineError(f"the output {root} and the store {store} overlap; choose another output")
        above = next(path for path in (target, *target.parents) if path.exists())
        if above.is_dir() and not os.access(above, os.W_OK):
            raise PipelineError(f"cannot write the output {root}: permission denied in {above}")
    # The job itself checks the options.
    JobOutput(out, job, {})


def require_writable(path: Path) -> None:
    """Check before the job that its page can be written; leave nothing behind.

    Raises:
        PipelineError: the file cannot be written.
    """
    folder = path.parent
    if path.is_dir():
        raise PipelineError(f"cannot write {path}: it is a directory")
    if not folder.is_dir():
        raise PipelineError(f"cannot write {path}: the directory {folder} does not exist")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise PipelineError(f"cannot write {path}: permission denied")
