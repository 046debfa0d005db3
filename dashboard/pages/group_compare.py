"""Two groups side by side: where each stands in every queue, and how one gets to where the other is."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.responses import Response

from rewindmq.dashboard.data.comparison import GroupComparison, compare, lag_of
from rewindmq.dashboard.data.consumers import consumers_of
from rewindmq.dashboard.web.page import Page, Visit

# Queues in the table: those with the largest differences.
_ROWS: Final = 200
# Groups and topics that a page names for a choice.
_NAMES: Final = 200


async def show(visit: Visit) -> Response:
    """Show the form and, once it names another group, the comparison."""
    group, other, topic = visit.path("group"), visit.query("with").strip(), visit.query("topic").strip()
    names, found, broadcasting = await asyncio.gather(
        visit.source.groups(), _compared(visit, group, other, topic), _broadcasting(visit, group, other)
    )
    texts = filter(None, (found.left_problem, found.right_problem)) if found else ()
    return await visit.render_large(
        "compare.html",
        404 if found and found.is_absent else 200,
        title=group,
        other=other,
        topic=topic,
        names=[name for name in names.value or () if name != group][:_NAMES],
        found=found,
        broadcasting=broadcasting,
        # Once, if both are for the same reason.
        texts=[*dict.fromkeys(texts)],
        is_same=group == other,
        rows=found.rows if found else (),
        topics=[*found.topics.items()][:_NAMES] if found else [],
        lag_of=lag_of,
    )


async def _broadcasting(visit: Visit, *groups: str) -> list[str]:
    """Return those of the groups whose consumers keep their own offsets."""
    named = [group for group in groups if group]
    found = await asyncio.gather(*(consumers_of(visit.source, group, ask_each=False) for group in named))
    return [
        group
        for group, each in zip(named, found, strict=True)
        if each.value is not None and each.value.is_broadcasting
    ]


async def _compared(visit: Visit, group: str, other: str, topic: str) -> GroupComparison | None:
    if not other or other == group:
        return None
    return await compare(visit.source, group, other, topic, _ROWS)


PAGES = (Page("/groups/{group}/compare", show, "Compare"),)
