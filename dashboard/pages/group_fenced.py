"""A group's fenced commits: those that brokers refused because a fenced reset had overtaken them."""

from __future__ import annotations

from starlette.responses import Response

from rewindmq.dashboard.web.page import Page, Visit
from rewindmq.protocol.body.fenced_commit import FencedCommit
from rewindmq.protocol.code import ResponseCode


async def show(visit: Visit) -> Response:
    """Show the newest first; RocketMQ's brokers do not serve the request, and are greyed out."""
    group = visit.path("group")
    masters = await visit.source.group_masters(group)
    addresses = masters.value or {}
    admin = visit.source.admin
    answers = await visit.source.ask_each(
        addresses.values(), lambda address: admin.resets.fenced_commits(group, address=address)
    )
    commits: list[tuple[str, FencedCommit]] = []
    problems: dict[str, str] = {}
    unserved: list[str] = []
    for name, address in addresses.items():
        answer = answers[address]
        if answer.value is not None:
            commits += [(name, commit) for each in answer.value.values() for commit in each.commits]
        elif answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
            unserved.append(name)
        else:
            problems[name] = answer.problem or ""
    commits.sort(key=lambda each: -each[1].at)
    return visit.render(
        "fenced.html",
        masters.status,
        title=group,
        answer=masters,
        commits=commits[:200],
        problem_table=problems,
        unserved=unserved,
        asked=len(addresses),
    )


PAGES = (Page("/groups/{group}/fenced", show, "Fenced commits"),)
