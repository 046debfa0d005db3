"""The job ``verify``: checks a store (docs/spec/store.md 13.6) and the outputs made from it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rewindmq.pipeline.engines.runner import engine_of
from rewindmq.pipeline.snapshot.queue_view import QueueView
from rewindmq.pipeline.snapshot.snapshot import StoreSnapshot, take_snapshot
from rewindmq.pipeline.spark.progress import Progress, no_progress
from rewindmq.pipeline.verify.files_check import check_files
from rewindmq.pipeline.verify.outputs import open_output
from rewindmq.pipeline.verify.report import Tally, VerifyReport
from rewindmq.pipeline.verify.tasks import Subject, Work, compare, list_work

if TYPE_CHECKING:
    from rewindmq.pipeline.engines.runner import Runner


class Prepared(NamedTuple):
    """One store, ready for the comparison."""

    snapshot: StoreSnapshot
    work: Work


def verify(
    runner: Runner, store: str | Path, out: str | Path | None = None, *, progress: Progress = no_progress
) -> VerifyReport:
    """Check a store, and optionally a job's output; change nothing.

    Args:
        runner: a Spark session, or the local engine.
        out: output of ``compact`` or ``index``; for a compaction of several stores, the part that was made
            from this store is compared.

    Raises:
        PipelineError: the store cannot be read, or ``out`` is not an output made from the store.
    """
    tally = Tally()
    prepared = prepare(0, store, tally)
    output = None if out is None else open_output(prepared.snapshot, out)
    size = prepared.snapshot.end - prepared.snapshot.begin
    progress(f"comparing {size:,} bytes of log with queues and index")
    tally.add_rows(compare(engine_of(runner), [prepared.work]))
    checks = tally.checks(0)
    if output is not None:
        progress(f"comparing the log with {out}")
        checks += output.check(runner)
    return VerifyReport(prepared.snapshot.location, None if out is None else str(out), checks)


def verify_stores(
    runner: Runner, stores: Sequence[str | Path], *, progress: Progress = no_progress
) -> list[VerifyReport]:
    """Check several stores together; see ``verify``."""
    tally = Tally()
    prepared = [prepare(number, store, tally) for number, store in enumerate(stores)]
    size = sum(store.snapshot.end - store.snapshot.begin for store in prepared)
    progress(f"comparing {size:,} bytes of log with queues and index")
    tally.add_rows(compare(engine_of(runner), [store.work for store in prepared]))
    return [
        VerifyReport(store.snapshot.location, None, tally.checks(number))
        for number, store in enumerate(prepared)
    ]


def prepare(number: int, location: str | Path, tally: Tally) -> Prepared:
    """Check what the driver can check of a store, and list the tasks."""
    # Read offsets before queues: on a live store, later offsets could lie beyond the queues seen.
    offsets = take_snapshot(location).config("consumerOffset.json")
    snapshot = take_snapshot(location)
    views = {(queue.topic, queue.queue_id): QueueView(snapshot, queue) for queue in snapshot.queues()}
    check_files(number, snapshot, offsets, views, tally)
    return Prepared(snapshot, list_work(Subject(number, snapshot, snapshot, views), tally))
