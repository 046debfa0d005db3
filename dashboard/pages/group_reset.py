"""The reset of a group: choose where it goes, and see what would happen to each queue."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.responses import Response

from rewindmq.dashboard.data.reset_previews import AIMS, Previewed, preview_as_group, preview_of, target_of
from rewindmq.dashboard.web.numbers import milliseconds
from rewindmq.dashboard.web.page import Page, Visit
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.names import RETRY_GROUP_TOPIC_PREFIX

# Queues in the table.
_ROWS: Final = 1000


async def show(visit: Visit) -> Response:
    """Show the form and, once it names topic and target, the preview."""
    group, topic, to = visit.path("group"), visit.query("topic").strip(), visit.query("to")
    # At the same time, so that a broker that hangs holds the page up once.
    found, queues = await asyncio.gather(_preview(visit, group, topic, to), visit.source.group_queues(group))
    rows = queues.value.rows if queues.value else {}
    topics = sorted({queue.topic for queue in rows if not queue.topic.startswith(RETRY_GROUP_TOPIC_PREFIX)})
    return visit.render(
        "reset.html",
        title=group,
        topics=topics,
        topic=topic or (topics[0] if len(topics) == 1 else ""),
        to=to if to in AIMS else "earliest",
        at=milliseconds(visit.query("at")),
        ago=visit.query("ago"),
        as_group=visit.query("as").strip(),
        aims=AIMS,
        preview=found.preview,
        problem=found.problem,
        rows=found.preview.queues[:_ROWS] if found.preview else (),
    )


async def _preview(visit: Visit, group: str, topic: str, to: str) -> Previewed:
    """Return the preview that the query asks for; neither preview nor problem if it asks for none."""
    if not topic and not to:
        return Previewed(None)
    if not topic or not to:
        return Previewed(None, "Choose both, a topic and where the group goes.")
    if to == "group":
        return await preview_as_group(visit.source, group, topic, visit.query("as").strip())
    now_ms = visit.source.runtime.clock.now_ms()
    try:
        target = target_of(to, milliseconds(visit.query("at")), visit.query("ago"), now_ms)
    except ClientError as error:
        return Previewed(None, f"{error}.")
    return await preview_of(visit.source, group, topic, target)


PAGES = (Page("/groups/{group}/reset", show, "Reset"),)
