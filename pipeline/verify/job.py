"""The consistency checks of a store (docs/spec/store.md 13.6), and the proofs for what was made from it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rewindmq.pipeline.progress import Tell, tell_nobody
from rewindmq.pipeline.queue_view import QueueView
from rewindmq.pipeline.snapshot import StoreSnapshot, take_snapshot
from rewindmq.pipeline.verify.files_check import check_files
from rewindmq.pipeline.verify.outputs import open_output
from rewindmq.pipeline.verify.report import Tally, VerifyReport
from rewindmq.pipeline.verify.tasks import Subject, Work, compare, list_work

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Prepared(NamedTuple):
    """One store, looked at."""

    snapshot: StoreSnapshot
    work: Work


def verify(
    spark: SparkSession, store: str | Path, out: str | Path | None = None, *, tell: Tell = tell_nobody
) -> VerifyReport:
    """Check a store, and what a job made of it; nothing is changed.

    Args:
        out: output of ``compact`` or of ``index``; of a compaction of several stores, the part that was made
            from this one is compared.

    Raises:
        PipelineError: the store cannot be read as one, ``out`` is no output, or was not made from the store.
    """
    tally = Tally()
    prepared = prepare(0, store, tally)
    output = None if out is None else open_output(prepared.snapshot, out)
    size = prepared.snapshot.end - prepared.snapshot.begin
    tell(f"comparing {size:,} bytes of log with queues and index")
    tally.add_rows(compare(spark, [prepared.work]))
    checks = tally.checks(0)
    if output is not None:
        tell(f"comparing the log with {out}")
        checks += output.check(spark)
    return VerifyReport(prepared.snapshot.location, None if out is None else str(out), checks)


def verify_stores(
    spark: SparkSession, stores: Sequence[str | Path], *, tell: Tell = tell_nobody
) -> list[VerifyReport]:
    """Check several stores at once; see ``verify``."""
    tally = Tally()
    prepared = [prepare(number, store, tally) for number, store in enumerate(stores)]
    size = sum(store.snapshot.end - store.snapshot.begin for store in prepared)
    tell(f"comparing {size:,} bytes of log with queues and index")
    tally.add_rows(compare(spark, [store.work for store in prepared]))
    return [
        VerifyReport(store.snapshot.location, None, tally.checks(number))
        for number, store in enumerate(prepared)
    ]


def prepare(number: int, location: str | Path, tally: Tally) -> Prepared:
    """Look at a store, check what the driver can, and list the tasks."""
    # Offsets first: on a live store those read later could lie beyond the queues looked at.
    offsets = take_snapshot(location).config("consumerOffset.json")
    snapshot = take_snapshot(location)
    views = {(queue.topic, queue.queue_id): QueueView(snapshot, queue) for queue in snapshot.queues()}
    check_files(number, snapshot, offsets, views, tally)
    return Prepared(snapshot, list_work(Subject(number, snapshot, snapshot, views), tally))
