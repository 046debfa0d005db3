"""The output of ``resetOffsetByTime --preview``."""

from __future__ import annotations

from typing import Any, Final

from rewindmq.client.admin.commands.command import Printed
from rewindmq.client.admin.timestamp import format_milliseconds
from rewindmq.client.admin.watched_reset.preview import Preview, QueuePreview
from rewindmq.watch.evidence.sample import name_of

_COLUMNS: Final = (
    ("#Broker Name", 16),
    ("#QID", 4),
    ("#Min", 10),
    ("#Max", 10),
    ("#Stored", 10),
    ("#Target", 10),
    ("#Target Time", 23),
    ("#Again", 8),
    ("#Skipped", 8),
    ("#Bytes", 10),
    ("#Consumer", 0),
)


def print_preview(preview: Preview) -> Printed:
    """Return the preview as a table with its sums, notes and obstacles, and as JSON."""
    lines = [
        f"preview: group[{preview.group}], topic[{preview.topic}], {aim_text(preview.timestamp)}",
        _row(*(name for name, _ in _COLUMNS)),
        *map(_queue_row, preview.queues),
        "",
        f"Redelivered: {preview.redelivered}   Skipped: {preview.skipped}   Bytes: about {_bytes(preview)}",
        *(f"OBSTACLE: {text}" for text in preview.obstacles),
        *(f"NOTE: {text}" for text in preview.notes),
        *(f"EVIDENCE: {outlook}" for outlook in preview.outlooks),
    ]
    return Printed(lines, preview_data(preview))


def aim_text(timestamp: int | None) -> str:
    """Return what a reset asks for: ``timestamp[…]``, or ``offsets[by queue]``."""
    return "offsets[by queue]" if timestamp is None else f"timestamp[{timestamp}]"


def preview_data(preview: Preview) -> dict[str, Any]:
    """Return the preview for JSON, with the field names of mqadmin's style."""
    return {
        "group": preview.group,
        "topic": preview.topic,
        "timestamp": preview.timestamp,
        "force": preview.force,
        "mode": preview.mode,
        "redelivered": preview.redelivered,
        "skipped": preview.skipped,
        "consumers": list(preview.consumers),
        "retryLag": preview.retry_lag,
        "obstacles": list(preview.obstacles),
        "notes": list(preview.notes),
        "evidence": [
            {
                "queues": list(map(name_of, outlook.queues)),
                "by": outlook.evidence,
                "promise": outlook.promise,
                "text": str(outlook),
            }
            for outlook in preview.outlooks
        ],
        "queues": [
            {
                "brokerName": row.queue.broker_name,
                "queueId": row.queue.queue_id,
                "minOffset": row.min_offset,
                "maxOffset": row.max_offset,
                "storedOffset": row.stored,
                "targetOffset": row.target,
                "stays": row.stays,
                "targetTime": row.target_time,
                "redelivered": row.redelivered,
                "skipped": row.skipped,
                "bytes": row.bytes,
                "consumer": row.consumer,
            }
            for row in preview.queues
        ],
    }


def _queue_row(row: QueuePreview) -> str:
    return _row(
        row.queue.broker_name,
        row.queue.queue_id,
        row.min_offset,
        row.max_offset,
        "-" if row.stored is None else row.stored,
        "-" if row.stays else row.target,
        "-" if row.stays or row.target_time is None else format_milliseconds(row.target_time),
        row.redelivered,
        row.skipped,
        "-" if row.bytes is None else row.bytes,
        row.consumer or "-",
    )


def _row(*values: object) -> str:
    return "  ".join(f"{value!s:<{width}}" for value, (_, width) in zip(values, _COLUMNS, strict=True))


def _bytes(preview: Preview) -> int:
    return sum(row.bytes or 0 for row in preview.queues)
