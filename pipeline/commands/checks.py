"""What is looked at before Spark is started, so that wrong input is told at once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rewindmq.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from rewindmq.pipeline.snapshot.snapshot import StoreSnapshot


def look_at_stores(locations: Iterable[str]) -> list[StoreSnapshot]:
    """Look at the stores before Spark is started, so that a wrong path is told at once.

    Raises:
        PipelineError: Spark is missing; a location is no store, or holds no message.
    """
    from rewindmq.pipeline.spark.session import require_spark

    require_spark()
    from rewindmq.pipeline.snapshot.snapshot import take_snapshot

    snapshots = [take_snapshot(location) for location in locations]
    for snapshot in snapshots:
        if snapshot.begin == snapshot.end:
            raise PipelineError(f"{snapshot.location} holds no messages: its commit log is empty")
    return snapshots


def require_topics(snapshots: Sequence[StoreSnapshot], topics: Iterable[str]) -> None:
    """
    Raises:
        PipelineError: no store has such a topic.
    """
    known = {queue.topic for snapshot in snapshots for queue in snapshot.queues()}
    for snapshot in snapshots:
        known |= set(snapshot.config("topics.json").get("topicConfigTable", {}))
    for topic in topics:
        # Without queues and configuration only the log itself knows.
        if known and topic not in known:
            raise PipelineError(f"unknown topic {topic!r}; there are {', '.join(sorted(known))}")


def look_at_output(out: str, job: str, snapshots: Sequence[StoreSnapshot]) -> None:
    """Look at the output before Spark is started; nothing is written.

    Raises:
        PipelineError: it is a file, something else or another job's; it holds a store or lies within one; it
            cannot be written.
    """
    from rewindmq.pipeline.files import LocalFiles, open_files
    from rewindmq.pipeline.output.output import JobOutput

    files, root = open_files(out)
    if isinstance(files, LocalFiles):
        target = Path(root).resolve()
        for store in (Path(item.root).resolve() for item in snapshots if isinstance(item.files, LocalFiles)):
            if target == store or store in target.parents or target in store.parents:
                raise PipelineError(f"the output {root} is not apart from the store {store}; choose another")
        above = next(path for path in (target, *target.parents) if path.exists())
        if above.is_dir() and not os.access(above, os.W_OK):
            raise PipelineError(f"cannot write the output {root}: permission denied in {above}")
    # Its options are looked at by the job itself.
    JobOutput(out, job, {})


def require_writable(path: Path) -> None:
    """Find out before the job whether its page can be written; leaves nothing behind.

    Raises:
        PipelineError: no file can be written there.
    """
    folder = path.parent
    if path.is_dir():
        raise PipelineError(f"cannot write {path}: it is a directory")
    if not folder.is_dir():
        raise PipelineError(f"cannot write {path}: there is no directory {folder}")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise PipelineError(f"cannot write {path}: permission denied")
