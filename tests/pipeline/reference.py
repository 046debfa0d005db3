"""The expected results of the jobs, in plain and slow Python: the reference of the property tests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from rewindmq.broker.store.consume_queue.tags_code import SCHEDULE_TOPIC
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message.record import RecordError, crc_ok, decode_record

HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
OP_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
_TRANSACTION = 0xC
_OUTSIDE_QUEUES = (0x4, 0xC)


def read_log(root: Path) -> list[MessageExt]:
    """Every intact record of an undamaged log, up to its (perhaps torn) end."""
    found: list[MessageExt] = []
    for segment in sorted((root / "commitlog").iterdir()):
        data, at = segment.read_bytes(), 0
        while True:
            try:
                message = decode_record(data, at)
            except RecordError:
                break
            if message.commit_log_offset != int(segment.name) + at or not crc_ok(message):
                break
            found.append(message)
            at += message.store_size
    return found


def consumer_offsets(root: Path) -> dict[str, dict[str, int]]:
    """Where groups stand: by "topic@group", then by queue."""
    return dict(json.loads((root / "config" / "consumerOffset.json").read_text())["offsetTable"])


def delay_offsets(root: Path) -> dict[int, int]:
    """Up to where delayed messages are delivered, by level."""
    table = json.loads((root / "config" / "delayOffset.json").read_text())["offsetTable"]
    return {int(level): offset for level, offset in table.items()}


def is_user_topic(topic: str) -> bool:
    """Whether compaction may touch it."""
    return not topic.startswith(("%", "RMQ_SYS_")) and topic != SCHEDULE_TOPIC


def survivors(
    log: Sequence[MessageExt],
    topics: Iterable[str],
    *,
    scope: str = "queue",
    grace_ms: int = 0,
    keep_keyless: bool = True,
) -> list[MessageExt]:
    """The messages of these topics that a compaction keeps, in the order of the log."""
    chosen = set(topics)
    queued = [m for m in log if m.topic in chosen and m.sys_flag & _TRANSACTION not in _OUTSIDE_QUEUES]
    newest: dict[tuple[object, ...], MessageExt] = {}
    for message in queued:
        if message.keys:
            queue = message.queue_id if scope == "queue" else None
            newest[message.topic, queue, message.keys] = message
    until = max((m.store_timestamp for m in log), default=0) - grace_ms
    kept = {
        m.commit_log_offset
        for m in newest.values()
        if m.stored_body or (grace_ms and m.store_timestamp >= until)
    }
    return [m for m in queued if m.commit_log_offset in kept or (keep_keyless and not m.keys)]


def kept_of_the_system(log: Sequence[MessageExt], delay_offsets: dict[int, int]) -> list[MessageExt]:
    """Return the kept messages of topics that are not compacted: pending delays, open halves, retries."""
    done = {int(piece) for m in log if m.topic == OP_TOPIC for piece in m.stored_body.decode().split(",")}
    kept = []
    for message in log:
        if message.topic == SCHEDULE_TOPIC:
            keep = message.queue_offset >= delay_offsets.get(message.queue_id + 1, 0)
        elif message.topic == HALF_TOPIC:
            keep = message.queue_offset not in done
        else:
            keep = message.topic != OP_TOPIC and not is_user_topic(message.topic)
        if keep:
            kept.append(message)
    return kept


def new_offset(old: int, kept: Sequence[int]) -> int:
    """Where a group that stood at ``old`` stands, given the old queue offsets of the messages kept."""
    return sum(offset < old for offset in kept)
