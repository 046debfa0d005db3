"""A group's consumers, what each has subscribed, and what one of them is doing."""

from __future__ import annotations

from starlette.responses import Response

from rewindmq.client.admin.running_info_report import format_running_info
from rewindmq.dashboard.data.consumers import consumers_of
from rewindmq.dashboard.web.page import Page, Visit
from rewindmq.protocol.text import escape_lines
from rewindmq.protocol.version import version_name


async def show_list(visit: Visit) -> Response:
    """Show the connected consumers, and the topics that they subscribed differently."""
    group = visit.path("group")
    answer = await consumers_of(visit.source, group)
    return visit.render(
        "consumers.html",
        title=group,
        answer=answer,
        differing=answer.value.differing() if answer.value else [],
        version_name=version_name,
    )


async def show_one(visit: Visit) -> Response:
    """Show a consumer's running info with the stacks of its threads or tasks."""
    group, client = visit.path("group"), visit.path("client")
    work = visit.source.admin.get_consumer_running_info(group, client, stacks=True)
    answer = await visit.source.ask(work)
    report = escape_lines(format_running_info(answer.value)) if answer.value else ""
    return visit.render("consumer.html", title=client, group=group, answer=answer, report=report)


PAGES = (
    Page("/groups/{group}/consumers", show_list, "Consumers"),
    Page("/groups/{group}/consumers/{client}", show_one, "Consumer"),
)
