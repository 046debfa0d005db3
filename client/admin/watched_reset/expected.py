"""What an earlier preview promised, and what has moved since."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Sequence
from typing import Final

import msgspec

from rewindmq.client.admin.watched_reset.preview import Preview, QueuePreview
from rewindmq.protocol.command import DECODE_FAILURES
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.reset_mode import ResetMode

# 100,000 queues have about 30 MB.
MAX_BYTES: Final = 64 * 1024 * 1024


class ExpectedQueue(msgspec.Struct, frozen=True, rename="camel"):
    """One queue of the preview's JSON; see ``QueuePreview``."""

    broker_name: str
    queue_id: int
    stored_offset: int | None
    target_offset: int
    redelivered: int
    skipped: int
    consumer: str | None


class Expected(msgspec.Struct, frozen=True):
    """The part of the preview's JSON that a reset depends on. Other fields are ignored."""

    group: str
    topic: str
    timestamp: int | None
    force: bool
    obstacles: list[str]
    queues: list[ExpectedQueue]
    mode: ResetMode | None = None


def expected_of(preview: Preview) -> Expected:
    """Return the part of a preview that ``moved_since`` compares."""
    return Expected(
        preview.group,
        preview.topic,
        preview.timestamp,
        preview.force,
        list(preview.obstacles),
        [
            ExpectedQueue(
                row.queue.broker_name,
                row.queue.queue_id,
                row.stored,
                row.target,
                row.redelivered,
                row.skipped,
                row.consumer,
            )
            for row in preview.queues
        ],
        preview.mode,
    )


def read_expected(data: bytes) -> Expected:
    """Decode what ``resetOffsetByTime --preview --json`` printed.

    Raises:
        ClientError: the bytes are more than ``MAX_BYTES``, or no such preview.
    """
    if len(data) > MAX_BYTES:
        raise ClientError(f"a preview has at most {MAX_BYTES} bytes: save --preview --json again")
    try:
        return msgspec.json.decode(data.removeprefix(BOM_UTF8), type=Expected)
    except DECODE_FAILURES as error:
        raise ClientError(
            f"this is no preview ({error}): save the output of --preview --json again"
        ) from None


def moved_since(expected: Expected, now: Preview) -> list[str]:
    """Return a line for each thing that has moved; none if the reset does what the preview showed.

    New messages alone are no move, unless the target is the end of the queue.

    Raises:
        ClientError: the preview is of another reset.
    """
    for name in ("group", "topic", "timestamp", "force", "mode"):
        was, asked = getattr(expected, name), getattr(now, name)
        if was != asked:
            raise ClientError(
                f"the preview is of {name} {_text(was)}, not {_text(asked)}: give the same options as with it"
            )
    before = {(queue.broker_name, queue.queue_id): queue for queue in expected.queues}
    after = {(row.queue.broker_name, row.queue.queue_id): row for row in now.queues}
    moved = [f"{_name(key)}: the queue is gone" for key in sorted(before.keys() - after.keys())]
    moved += [f"{_name(key)}: the queue is new" for key in sorted(after.keys() - before.keys())]
    for key in sorted(before.keys() & after.keys()):
        moved += [f"{_name(key)}: {change}" for change in _changes(before[key], after[key])]
    moved += [f"new obstacle: {text}" for text in now.obstacles if text not in expected.obstacles]
    return moved


def _changes(was: ExpectedQueue, row: QueuePreview) -> list[str]:
    offsets = [
        ("stored offset", was.stored_offset, row.stored),
        ("target offset", was.target_offset, row.target),
    ]
    # They follow from the offsets, but deleted messages change them alone.
    counts = [
        ("messages to redeliver", was.redelivered, row.redelivered),
        ("messages to skip", was.skipped, row.skipped),
    ]
    changes = _different(offsets) or _different(counts)
    return changes + _different([("consumer", was.consumer, row.consumer)])


def _different(values: Sequence[tuple[str, object, object]]) -> list[str]:
    return [f"{name} was {_text(was)}, is {_text(now)}" for name, was, now in values if was != now]


def _text(value: object) -> str:
    return "-" if value is None else str(value)


def _name(key: tuple[str, int]) -> str:
    return f"{key[0]}:{key[1]}"
