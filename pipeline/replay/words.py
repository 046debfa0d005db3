"""Formats a plan's figures for people; times are in the machine's zone."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from rewindmq.pipeline.figures import format_bytes
from rewindmq.pipeline.replay.plan import Direction, MessageLoad, QueueReplay, ReplayPlan

_LAST_MS: Final = 253_402_300_799_999
_DURATIONS: Final = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000), ("ms", 1))


def format_time(ms: int | None) -> str:
    """Format a time as ``2026-03-01 12:30:00.250 +0100``."""
    if ms is None:
        return "-"
    time = local_time(ms)
    return f"{time:%Y-%m-%d %H:%M:%S}.{ms % 1000:03d} {time:%z}"


def local_time(ms: int) -> datetime:
    """Return the local time; beyond Python's range, the nearest time that Python can hold."""
    return datetime.fromtimestamp(max(0, min(ms, _LAST_MS)) // 1000, tz=UTC).astimezone()


def format_duration(ms: int) -> str:
    """Format a duration as ``10 min``, in the largest unit that gives a whole number."""
    unit, size = next((unit, size) for unit, size in _DURATIONS if ms % size == 0)
    return f"{ms // size:,} {unit}"


def format_target(plan: ReplayPlan) -> str:
    """Format the target."""
    if plan.timestamp is not None:
        return f"{format_time(plan.timestamp)} ({plan.timestamp})"
    return "the end of every queue" if plan.offset is None else f"offset {plan.offset:,} of every queue"


def format_current(queue: QueueReplay) -> str:
    """Format the stored offset."""
    return "none" if queue.current is None else f"{queue.current:,}"


def describe_load(load: MessageLoad) -> str:
    """Describe size, keys and superseded messages in one line."""
    parts = [format_bytes(load.size), f"{load.distinct_keys:,} distinct keys"]
    if load.messages:
        share = 100 * load.superseded / load.messages
        parts.append(f"{load.superseded:,} already superseded ({share:.0f} %)")
    if load.without_key:
        parts.append(f"{load.without_key:,} without a key")
    if load.unreadable:
        parts.append(f"{load.unreadable:,} unreadable")
    return ", ".join(parts)


def direction_words(direction: Direction) -> str:
    """Describe a queue's direction."""
    return {
        Direction.BACK: "goes back",
        Direction.AHEAD: "moves ahead: messages are skipped",
        Direction.STAYS: "stays",
        Direction.UNKNOWN: "no offset stored",
    }[direction]
