"""Compares an index output (queues, key index, time index, Parquet copy) with the log it was made from."""

from __future__ import annotations

from typing import Final

from rewindmq.broker.store.layout.time_index import FOLDER as TIME_FOLDER
from rewindmq.pipeline.engines.engine import Engine
from rewindmq.pipeline.files import open_files
from rewindmq.pipeline.output.output import Manifest
from rewindmq.pipeline.snapshot.queue_view import QueueView
from rewindmq.pipeline.snapshot.snapshot import StoreSnapshot
from rewindmq.pipeline.verify.report import Tally
from rewindmq.pipeline.verify.tasks import Subject, compare, list_work

_COPY_FOLDER: Final = "messages"
_SLOTS: Final = "maxHashSlotNum"


def prove_index(engine: Engine, log: StoreSnapshot, out: str, manifest: Manifest, tally: Tally) -> None:
    """Compare the output with the log.

    Args:
        log: the store, cut where the output's source ended.
    """
    files, root = open_files(out)
    folder = f"{root}/{manifest.folder}"
    made = log._replace(files=files, root=folder)
    views = {(queue.topic, queue.queue_id): QueueView(made, queue) for queue in made.queues()}
    copy = f"{folder}/{_COPY_FOLDER}" if files.list(f"{folder}/{_COPY_FOLDER}") else ""
    times = f"{folder}/{TIME_FOLDER}" if files.list(f"{folder}/{TIME_FOLDER}") else ""
    subject = Subject(0, log, made, views, times, copy, manifest.options.get(_SLOTS, 0))
    work = list_work(subject, tally)
    tally.add_rows(compare(engine, [work]))
