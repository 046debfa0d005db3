"""Groups: the list, and one group's queues."""

from __future__ import annotations

from starlette.responses import Response

from rewindmq.dashboard.web.page import Page, Visit
from rewindmq.dashboard.web.paging import paging


async def show_list(visit: Visit) -> Response:
    """Show one page of the names that match."""
    answer = await visit.source.groups()
    found = paging(answer.value or (), visit.query("q"), visit.query("page", "1"))
    return visit.render("names.html", title="Groups", kind="group", answer=answer, found=found)


async def show_one(visit: Visit) -> Response:
    """Show every queue; a broker that hangs is named with the reason."""
    group = visit.path("group")
    answer = await visit.source.group_queues(group)
    return visit.render("group.html", title=group, answer=answer)


PAGES = (
    Page("/groups", show_list, "Groups", navigation="Groups"),
    Page("/groups/{group:path}", show_one, "Group"),
)
