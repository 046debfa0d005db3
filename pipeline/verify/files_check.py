"""Checks names, sizes and configuration files of a store, without reading its log."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from typing import Any, Final

from rewindmq.broker.store.consume_queue.tags_code import SCHEDULE_TOPIC
from rewindmq.pipeline.snapshot.queue_view import LogView, QueueView
from rewindmq.pipeline.snapshot.snapshot import CQ_ENTRY_BYTES, QueueFiles, StoreSnapshot
from rewindmq.pipeline.verify.report import Tally

CHECKPOINT_BYTES: Final = 4_096
_TIMES: Final = struct.Struct(">qqq")
_TIME_NAMES: Final = ("physicMsgTimestamp", "logicsMsgTimestamp", "indexMsgTimestamp")
_POSITION_NAME: Final = re.compile(r"\d{20}")

Views = Mapping[tuple[str, int], QueueView]


def check_files(
    store: int, snapshot: StoreSnapshot, offsets: Mapping[str, Any], views: Views, tally: Tally
) -> None:
    """Run all checks of files.

    Args:
        offsets: content of consumerOffset.json, read before the snapshot was taken.
    """
    _check_log_folder(store, snapshot, tally)
    for view in views.values():
        _check_queue_folder(store, snapshot, snapshot.queue(view.topic, view.queue_id), tally)
    _check_consumer_offsets(store, offsets, views, tally)
    _check_delay_offsets(store, snapshot, views, tally)
    _check_checkpoint(store, snapshot, views, tally)


def _check_log_folder(store: int, snapshot: StoreSnapshot, tally: Tally) -> None:
    names = [entry.name for entry in snapshot.files.list(f"{snapshot.root}/commitlog")]
    strange = [name for name in names if not _POSITION_NAME.fullmatch(name)]
    examples = [
        (0, f"commitlog/{name} is not a segment: a 4.9.4 broker refuses to start") for name in strange
    ]
    tally.add(store, "log files", len(names), len(strange), examples)
    torn = snapshot.torn
    tally.add(
        store,
        "log tail",
        1,
        int(torn is not None),
        [] if torn is None else [(torn.start, f"at {torn.start}: {torn.detail}")],
    )


def _check_queue_folder(store: int, snapshot: StoreSnapshot, queue: QueueFiles, tally: Tally) -> None:
    folder = f"{snapshot.root}/consumequeue/{queue.topic}/{queue.queue_id}"
    entries = snapshot.files.list(folder)
    label = f"{queue.topic}/{queue.queue_id}"
    faults = [
        f"{label}/{entry.name} is not a consume queue file"
        for entry in entries
        if not entry.is_file or not _POSITION_NAME.fullmatch(entry.name)
    ]
    faults += _sequence_faults(label, queue)
    tally.add(
        store, "queue files", max(len(entries), len(faults)), len(faults), [(0, text) for text in faults]
    )


def _sequence_faults(label: str, queue: QueueFiles) -> Iterator[str]:
    if not queue.files:
        return
    size = queue.files[0].size
    expected = queue.files[0].base
    for file in queue.files:
        name = f"{label}/{file.base:020d}"
        if file.size != size:
            yield f"{name} has {file.size} bytes, but the first file of the queue has {size}"
        elif file.size % CQ_ENTRY_BYTES or not file.size:
            yield f"{name} has {file.size} bytes, which is not a multiple of the entry size"
        elif file.base % size:
            yield f"{name}: the position in its name is not a multiple of the file size {size}"
        elif file.base != expected:
            yield f"{name} is out of order: expected {expected:020d}"
        expected = file.base + size


def _check_consumer_offsets(store: int, offsets: Mapping[str, Any], views: Views, tally: Tally) -> None:
    table = offsets.get("offsetTable") or {}
    beyond, expired, checked = [], [], 0
    topics = {topic for topic, _ in views}
    for name, queues in table.items():
        topic = name.partition("@")[0]
        for queue_id, offset in queues.items():
            checked += 1
            view = views.get((topic, int(queue_id)))
            low, high = (0, 0) if view is None else (view.min_offset, view.max_offset)
            text = f"{name} queue {queue_id}: offset {offset}, the queue has [{low}, {high}]"
            # Offsets of a deleted topic may remain.
            if offset > high and topic in topics:
                beyond.append((0, text))
            elif 0 <= offset < low:
                expired.append((0, text))
    tally.add(store, "consumer offset", checked, len(beyond), beyond)
    tally.add(store, "consumer offset expired", checked, len(expired), expired)


def _check_delay_offsets(store: int, snapshot: StoreSnapshot, views: Views, tally: Tally) -> None:
    table = snapshot.config("delayOffset.json").get("offsetTable") or {}
    wrong = []
    for level, offset in table.items():
        view = views.get((SCHEDULE_TOPIC, int(level) - 1))
        high = 0 if view is None else view.max_offset
        if not 0 <= offset <= high:
            wrong.append((int(level), f"level {level}: offset {offset}, its queue ends at {high}"))
    tally.add(store, "delay offset", len(table), len(wrong), wrong)


def _check_checkpoint(store: int, snapshot: StoreSnapshot, views: Views, tally: Tally) -> None:
    data = snapshot.files.read_all(f"{snapshot.root}/checkpoint")
    if data is None:
        return
    if len(data) != CHECKPOINT_BYTES:
        text = f"checkpoint has {len(data)} bytes instead of {CHECKPOINT_BYTES}"
        tally.add(store, "checkpoint", 1, 1, [(0, text)])
        return
    newest = newest_store_time(snapshot, views)
    faults = [
        (0, f"{name} is {time}, but the newest message's store time is {newest}")
        for name, time in zip(_TIME_NAMES, _TIMES.unpack_from(data), strict=True)
        if time < 0 or (newest is not None and time > newest)
    ]
    tally.add(store, "checkpoint", len(_TIME_NAMES), len(faults), faults)


def newest_store_time(snapshot: StoreSnapshot, views: Views) -> int | None:
    """Return the store time of the newest message that has a ConsumeQueue entry, ms; None if none has."""
    log = LogView(snapshot)
    entries = [view.entry(view.max_offset - 1) for view in views.values()]
    newest = max((entry[0] for entry in entries if entry is not None), default=None)
    return None if newest is None else log.store_time(newest)
