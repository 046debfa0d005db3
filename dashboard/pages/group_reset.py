"""The reset of a group: choose where it goes, and see what would happen to each queue."""

from __future__ import annotations

from starlette.responses import Response

from rewindmq.dashboard.data.reset_previews import AIMS, Previewed, preview_of, target_of
from rewindmq.dashboard.web.numbers import milliseconds
from rewindmq.dashboard.web.page import Page, Visit
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.names import RETRY_GROUP_TOPIC_PREFIX

# Queues in the table.
_ROWS = 1000


async def show(visit: Visit) -> Response:
    """Show the form and, once it names topic and target, the preview."""
    group, topic, to = visit.path("group"), visit.query("topic").strip(), visit.query("to")
    found = Previewed(None)
    if topic and to:
        now_ms = visit.source.runtime.clock.now_ms()
        try:
            target = target_of(to, milliseconds(visit.query("at")), visit.query("ago"), now_ms)
        except ClientError as error:
            found = Previewed(None, f"{error}.")
        else:
            found = await preview_of(visit.source, group, topic, target)
    elif topic or to:
        found = Previewed(None, "Choose both, a topic and where the group goes.")
    queues = await visit.source.group_queues(group)
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
        aims=AIMS,
        preview=found.preview,
        problem=found.problem,
        rows=found.preview.queues[:_ROWS] if found.preview else (),
    )


PAGES = (Page("/groups/{group}/reset", show, "Reset"),)
