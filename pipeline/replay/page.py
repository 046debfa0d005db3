"""Renders a replay plan as one self-contained HTML page: no script, external style sheet, font or image."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rewindmq.pipeline.figures import format_bytes
from rewindmq.pipeline.replay.drawing import (
    describe_bins,
    draw_histogram,
    draw_spark,
    draw_track,
    nearest_outline,
)
from rewindmq.pipeline.replay.plan import (
    MODE_TEXTS,
    Direction,
    MessageLoad,
    Mode,
    Move,
    QueueReplay,
    ReplayPlan,
)
from rewindmq.pipeline.replay.style import STYLE
from rewindmq.pipeline.replay.words import (
    describe_load,
    direction_words,
    format_current,
    format_target,
    format_time,
)
from rewindmq.protocol.text import escape_html as escape


def render_html(plan: ReplayPlan) -> str:
    """Return the page."""
    title = f"Replay plan: {plan.group} in {plan.topic}"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><main>"
        f"<h1>{escape(title)}</h1>{_facts(plan)}{_cards(plan)}{_notes(plan)}{_plot(plan)}{_queues(plan)}"
        "</main></body></html>\n"
    )


def _facts(plan: ReplayPlan) -> str:
    facts = [("to", format_target(plan))]
    for store in plan.stores:
        saved = "never" if store.offsets_saved is None else format_time(store.offsets_saved)
        facts.append((store.label, f"offsets saved {saved}"))
    items = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts)
    return f'<dl class="facts">{items}</dl>'


def _cards(plan: ReplayPlan) -> str:
    return f'<div class="cards">{"".join(_card(plan, mode) for mode in reversed(Mode))}</div>'


def _card(plan: ReplayPlan, mode: Mode) -> str:
    total, skipped = plan.totals[mode], plan.skipped[mode]
    lines = [f'<div class="figure">{total.messages:,} <small>messages redelivered</small></div>']
    if total.messages or total.unreadable:
        lines.append(f"<p>{escape(describe_load(total))}</p>")
        lines.append(f"<p>{escape(_times(plan, mode))}</p>")
    if skipped.messages or skipped.unreadable:
        lines.append(
            f"<p><strong>{skipped.messages:,} messages skipped</strong>: {escape(describe_load(skipped))}</p>"
        )
    return (
        f'<section class="card"><h3>{escape(MODE_TEXTS[mode])} ({mode} search)</h3>{"".join(lines)}</section>'
    )


def _times(plan: ReplayPlan, mode: Mode) -> str:
    moves = [queue.moves[mode] for queue in plan.queues if queue.moves[mode].direction is Direction.BACK]
    first = min((move.first_time for move in moves if move.first_time is not None), default=None)
    last = max((move.last_time for move in moves if move.last_time is not None), default=None)
    return f"stored {format_time(first)} to {format_time(last)}"


def _notes(plan: ReplayPlan) -> str:
    notes = [
        *plan.notes,
        *(
            f"{plan.stores[queue.store].label} queue {queue.queue_id}: no offset, the group"
            f" {queue.without_offset}."
            for queue in plan.queues
            if queue.without_offset
        ),
    ]
    if not notes:
        return ""
    return f'<ul class="notes">{"".join(f"<li>{escape(note)}</li>" for note in notes)}</ul>'


def _plot(plan: ReplayPlan) -> str:
    if not plan.bins.count:
        return "<h2>Over time</h2><p>No message is redelivered or skipped.</p>"
    return (
        '<h2>Over time</h2><div class="plot"><div class="scroll" tabindex="0" role="region"'
        f' aria-label="histogram">{draw_histogram(plan)}</div></div>{_legend(plan)}'
        f"<p>{escape(describe_bins(plan.bins))}</p>"
    )


def _legend(plan: ReplayPlan) -> str:
    items = [_BACK_KEY]
    if any(plan.histogram(Mode.BOUNDARY, Direction.AHEAD)):
        items.append(_AHEAD_KEY)
    if nearest_outline(plan):
        items.append(_NEAREST_KEY)
    return f'<ul class="legend">{"".join(f"<li>{item}</li>" for item in items)}</ul>'


def _queues(plan: ReplayPlan) -> str:
    rows = "".join(_row(plan, queue) for queue in plan.queues)
    return (
        '<h2>Queues</h2><div class="scroll" tabindex="0" role="region" aria-label="queues"><table>'
        f"<thead>{_HEAD}</thead><tbody>{rows}</tbody><tfoot>{_total(plan)}</tfoot></table></div>"
        "<p>A queue's bar runs from its first message to its end; the upright line marks the group's offset."
        "</p>"
    )


def _row(plan: ReplayPlan, queue: QueueReplay) -> str:
    nearest, boundary = queue.moves[Mode.NEAREST], queue.moves[Mode.BOUNDARY]
    cells = [
        escape(plan.stores[queue.store].label),
        str(queue.queue_id),
        f"{queue.min_offset:,}",
        format_current(queue),
        f"{queue.max_offset:,}",
        _target(queue, nearest),
        _messages(nearest),
        _target(queue, boundary),
        _messages(boundary),
        format_bytes(boundary.load.size),
        f"{boundary.load.distinct_keys:,}",
        f"{boundary.load.superseded:,}",
        draw_track(queue, Mode.BOUNDARY),
        draw_spark(boundary),
    ]
    title = escape(direction_words(boundary.direction))
    return f'<tr title="{title}">{_cells(cells)}</tr>'


def _target(queue: QueueReplay, move: Move) -> str:
    gone = ' <span class="gone">deleted</span>' if queue.is_deleted else ""
    return f"{move.target:,}{gone}"


def _messages(move: Move) -> str:
    words = " skipped" if move.direction is Direction.AHEAD else ""
    return f"{move.load.messages:,}{words}"


def _total(plan: ReplayPlan) -> str:
    nearest, boundary = plan.totals[Mode.NEAREST], plan.totals[Mode.BOUNDARY]
    rows = _total_row("redelivered", nearest, boundary)
    skipped = [plan.skipped[mode] for mode in Mode]
    if any(load.messages for load in skipped):
        rows += _total_row("skipped", *skipped)
    return rows


def _total_row(words: str, nearest: MessageLoad, boundary: MessageLoad) -> str:
    figures = [
        f"{nearest.messages:,}",
        "",
        f"{boundary.messages:,}",
        format_bytes(boundary.size),
        f"{boundary.distinct_keys:,}",
        f"{boundary.superseded:,}",
    ]
    return f'<tr><td colspan="6">all {words}</td>{_cells([*figures, "", ""])}</tr>'


def _cells(cells: Iterable[str]) -> str:
    return "".join(f"<td>{cell}</td>" for cell in cells)


_HEAD: Final = (
    '<tr><th colspan="5"></th><th colspan="2" scope="colgroup">nearest</th>'
    '<th colspan="7" scope="colgroup">boundary</th></tr><tr>'
    + "".join(
        f'<th scope="col">{name}</th>'
        for name in (
            *("store", "queue", "min", "current", "max", "target", "messages", "target", "messages"),
            *("bytes", "keys", "superseded", "in the queue", "over time"),
        )
    )
    + "</tr>"
)
_BACK_KEY: Final = (
    '<svg width="14" height="12" aria-hidden="true"><rect class="back" width="14" height="12"/></svg>'
    "redelivered (boundary search)"
)
_AHEAD_KEY: Final = (
    '<svg width="14" height="12" aria-hidden="true"><rect class="ahead" width="14" height="12"/></svg>'
    "skipped (boundary search)"
)
_NEAREST_KEY: Final = (
    '<svg width="24" height="12" aria-hidden="true"><path class="nearest" d="M1 10V3H23V10"/></svg>'
    "redelivered or skipped (nearest search)"
)
