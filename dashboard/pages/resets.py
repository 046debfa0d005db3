"""Watched resets: their history, and the proof of each, queue by queue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from markupsafe import Markup
from starlette.responses import Response

from rewindmq.dashboard.resets.history import DamagedError
from rewindmq.dashboard.resets.lanes import copied, draw_queue, style_sheet
from rewindmq.dashboard.resets.record import QueueRecord, ResetRecord
from rewindmq.dashboard.web.page import Page, Visit
from rewindmq.dashboard.web.paging import paging
from rewindmq.race.scenario.catalogue import SCENARIOS
from rewindmq.watch.verdict.states import FINAL, State

# Queues in the table, and steps in the list.
_ROWS: Final = 200
_STEPS: Final = 50
# What needs the viewer comes first.
_ORDER: Final = (
    State.LOST,
    State.UNKNOWN,
    State.ACCEPTED,
    State.STORED,
    State.REDELIVERING,
    State.PROVEN,
)


async def show_list(visit: Visit) -> Response:
    """Show the history."""
    listed = visit.resets.history.listed()
    by_name = {f"{each.group} {each.topic} {each.id}": each for each in listed.summaries}
    names = paging(list(by_name), visit.query("q"), visit.query("page"))
    return visit.render(
        "resets.html",
        title="Resets",
        paging=names,
        rows=[by_name[name] for name in names.names],
        damaged=listed.damaged,
        place=visit.resets.history.place,
    )


async def show_proof(visit: Visit) -> Response:
    """Show a reset; the page is live until it is over."""
    try:
        record = await visit.resets.read(visit.path("id"))
    except DamagedError as error:
        return visit.render("reset_absent.html", 404, title="This record is damaged", problem=f"{error}.")
    if record is None:
        return visit.render("reset_absent.html", 404, title="There is no such reset", problem=None)

    # A record that is watched changes; one that was read from a file is over.
    async def values() -> Mapping[str, Any]:
        return await _proof(visit, record)

    return await visit.live("proof.html", values)


async def _proof(visit: Visit, record: ResetRecord) -> Mapping[str, Any]:
    rows = sorted(record.queues, key=lambda row: (_ORDER.index(row.state), row.broker_name, row.queue_id))
    wanted = visit.query("queue")
    chosen = next((row for row in rows if row.name == wanted), rows[0] if rows else None)
    lanes = None
    if chosen is not None:
        lanes = await visit.source.runtime.workers.run(draw_queue, *copied(record, chosen))
    return {
        "title": record.group,
        "record": record,
        "undecided": sum(record.counts.get(state, 0) for state in State if state not in FINAL),
        "rows": rows[:_ROWS],
        "chosen": chosen,
        "lanes": lanes,
        # The drawing escapes every text.
        "drawing": Markup(lanes.html) if lanes else None,  # noqa: S704
        "steps": _steps(record, chosen),
        "races": {race: SCENARIOS[race].title for row in rows for race in row.races if race in SCENARIOS},
    }


def _steps(record: ResetRecord, chosen: QueueRecord | None) -> list[Any]:
    names = ("", chosen.name if chosen else "")
    return [event for event in record.events if event.queue in names][-_STEPS:]


async def show_style(visit: Visit) -> Response:
    """Return the style of the drawings, which is the race laboratory's."""
    return Response(style_sheet(), media_type="text/css", headers={"Cache-Control": "max-age=3600"})


PAGES = (
    Page("/resets", show_list, "Resets", navigation="Resets", place=4),
    Page("/resets/{id}", show_proof, "Proof"),
    Page("/lanes.css", show_style, "Style"),
)
