"""Renders a replay plan as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from rewindmq.pipeline.figures import format_bytes
from rewindmq.pipeline.replay.plan import MODE_TEXTS, Direction, Mode, Move, QueueReplay, ReplayPlan
from rewindmq.pipeline.replay.words import (
    describe_load,
    format_current,
    format_duration,
    format_target,
    format_time,
)
from rewindmq.protocol.text import escape_lines

_BLOCKS: Final = " ▁▂▃▄▅▆▇█"
_ASCII_BLOCKS: Final = " .:-=+*#@"
_TEXT_COLUMNS: Final = 1


class PlanTable(NamedTuple):
    """The queues of a plan, one row per queue and mode; the first column is text, the others are numbers."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def plan_table(plan: ReplayPlan, mode: Mode) -> PlanTable:
    """Return the table of one mode; the number of skipped messages has a ``-`` sign."""
    headings = (
        *("store", "queue", "min", "current", "max", "target"),
        *("messages", "bytes", "keys", "superseded"),
    )
    return PlanTable(headings, tuple(_row(plan, queue, queue.moves[mode]) for queue in plan.queues))


def _row(plan: ReplayPlan, queue: QueueReplay, move: Move) -> tuple[str, ...]:
    sign = "-" if move.direction is Direction.AHEAD else ""
    return (
        plan.stores[queue.store].label,
        str(queue.queue_id),
        f"{queue.min_offset:,}",
        format_current(queue),
        f"{queue.max_offset:,}",
        f"{move.target:,}{' (deleted)' if queue.is_deleted else ''}",
        f"{sign}{move.load.messages:,}",
        format_bytes(move.load.size),
        f"{move.load.distinct_keys:,}",
        f"{move.load.superseded:,}",
    )


def render_text(plan: ReplayPlan, *, is_plain: bool = False) -> str:
    """Render the plan for a terminal.

    Args:
        is_plain: use only ASCII characters in the histogram.
    """
    return escape_lines(_lines(plan, _ASCII_BLOCKS if is_plain else _BLOCKS)) + "\n"


def _lines(plan: ReplayPlan, blocks: str) -> Iterator[str]:
    yield f"group {plan.group}, topic {plan.topic}, to {format_target(plan)}"
    agree = _agree(plan)
    for mode in (Mode.BOUNDARY,) if agree else Mode:
        yield ""
        if not agree:
            yield f"{mode} ({MODE_TEXTS[mode]})"
        elif plan.timestamp is not None:
            yield "both searches by time give the same result"
        yield from table_lines(plan_table(plan, mode))
        for load, words in ((plan.totals[mode], "redelivered"), (plan.skipped[mode], "skipped")):
            if load.messages or load.unreadable:
                yield f"{load.messages:,} messages {words}: {describe_load(load)}"
        histogram = plan.histogram(mode, Direction.BACK)
        if any(histogram):
            yield f"over store time: [{bar_line(histogram, blocks)}]"
    if plan.bins.count:
        end = plan.bins.start + plan.bins.count * plan.bins.width
        yield ""
        yield (
            f"histograms: {format_time(plan.bins.start)} to {format_time(end)},"
            f" {format_duration(plan.bins.width)} each"
        )
    for queue in plan.queues:
        if queue.without_offset:
            label = plan.stores[queue.store].label
            yield f"{label} queue {queue.queue_id} has no offset: the group {queue.without_offset}"
    for note in plan.notes:
        yield f"note: {note}"


def _agree(plan: ReplayPlan) -> bool:
    """Whether both modes give the same result in every queue."""
    return all(len({queue.moves[mode] for mode in Mode}) == 1 for queue in plan.queues)


def table_lines(table: PlanTable) -> list[str]:
    """Return the table as aligned text."""
    lines = [table.headings, *table.rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  ".join(_aligned(line, widths)).rstrip() for line in lines]


def _aligned(line: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    for number, (cell, width) in enumerate(zip(line, widths, strict=True)):
        yield f"{cell:<{width}}" if number < _TEXT_COLUMNS else f"{cell:>{width}}"


def bar_line(histogram: Sequence[int], blocks: str = _BLOCKS) -> str:
    """Render a histogram as one line; a bin with a message is never blank."""
    highest = max(histogram)
    steps = len(blocks) - 1
    return "".join(blocks[-(-count * steps // highest)] if count else blocks[0] for count in histogram)
