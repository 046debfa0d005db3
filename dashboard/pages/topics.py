"""Topics: the list, and one topic's queues."""

from __future__ import annotations

from starlette.responses import Response

from rewindmq.dashboard.web.page import Page, Visit
from rewindmq.dashboard.web.paging import paging


async def show_list(visit: Visit) -> Response:
    """Show one page of the names that match."""
    answer = await visit.source.topics()
    found = paging(answer.value or (), visit.query("q"), visit.query("page", "1"))
    return visit.render("names.html", title="Topics", kind="topic", answer=answer, found=found)


async def show_one(visit: Visit) -> Response:
    """Show every queue; a broker that hangs is named with the reason."""
    topic = visit.path("topic")
    answer = await visit.source.topic_queues(topic)
    return visit.render("topic.html", title=topic, answer=answer)


PAGES = (
    Page("/topics", show_list, "Topics", navigation="Topics"),
    Page("/topics/{topic:path}", show_one, "Topic"),
)
