"""A group's consumers, what each has subscribed, and what one of them is doing."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from starlette.responses import Response

from rewindmq.client.admin.running_info_report import format_running_info
from rewindmq.dashboard.data.answer import NoAnswer
from rewindmq.dashboard.data.consumers import consumers_of
from rewindmq.dashboard.web.page import Page, Visit
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.text import escape_lines
from rewindmq.protocol.version import version_name

# Characters of a consumer's stacks on the page of all consumers; its own page has the rest.
_STACK_CHARACTERS: Final = 32_768


async def show_list(visit: Visit) -> Response:
    """Show the connected consumers, and the topics that they subscribed differently."""
    group = visit.path("group")
    answer = await consumers_of(visit.source, group)
    return visit.render(
        "consumers.html",
        answer.status,
        title=group,
        answer=answer,
        differing=answer.value.differing() if answer.value else [],
        sharing=answer.value.sharing() if answer.value else [],
        stuck=answer.value.without_progress(visit.source.runtime.clock.now_ms()) if answer.value else [],
        version_name=version_name,
    )


async def show_stacks(visit: Visit) -> Response:
    """Show the stacks of the threads or tasks of each consumer, cut to what a reader can survey."""
    answer = await consumers_of(visit.source, visit.path("group"), stacks=True)
    rows = []
    for client, each in (answer.value.consumers if answer.value else {}).items():
        stacks = each.info.value.jstack if each.info and each.info.value else None
        shown = escape_lines((stacks or "")[:_STACK_CHARACTERS].splitlines())
        rows.append((client, each, shown, len(stacks or "") > _STACK_CHARACTERS))
    return visit.render("stacks.html", answer.status, title=visit.path("group"), answer=answer, rows=rows)


async def show_one(visit: Visit) -> Response:
    """Show a consumer's running info with the stacks of its threads or tasks."""
    group, client = visit.path("group"), visit.path("client")
    work = visit.source.admin.groups.get_consumer_running_info(group, client, stacks=True)
    answer = await visit.source.ask(work, server="The consumer, or its broker,")
    if answer.outcome is NoAnswer.REFUSED:
        # Brokers refuse with SYSTEM_ERROR (1), whether they do not know the client or it failed.
        known = await consumers_of(visit.source, group, ask_each=False)
        if known.is_absent or (
            known.value and not known.value.problems and client not in known.value.consumers
        ):
            answer = replace(answer, code=ResponseCode.CONSUMER_NOT_ONLINE)
    report = escape_lines(format_running_info(answer.value)) if answer.value else ""
    return visit.render(
        "consumer.html", answer.status, title=client, group=group, answer=answer, report=report
    )


PAGES = (
    Page("/groups/{group}/consumers", show_list, "Consumers"),
    Page("/groups/{group}/stacks", show_stacks, "Stacks"),
    Page("/groups/{group}/consumers/{client:path}", show_one, "Consumer"),
)
