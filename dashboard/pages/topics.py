"""Topics: the list, one topic's queues, and who consumes it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from starlette.responses import Response

from rewindmq.dashboard.web.page import Page, Visit
from rewindmq.dashboard.web.paging import paging
from rewindmq.protocol.body.stats import TopicOffset
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import DLQ_GROUP_TOPIC_PREFIX, RETRY_GROUP_TOPIC_PREFIX, is_system_topic

# Queues in one table; a topic with more has its other queues on further pages.
_ROWS: Final = 200


async def show_list(visit: Visit) -> Response:
    """Show one page of the names that match; topics of the brokers and clusters themselves are left out."""
    # At the same time, so that a name server that hangs holds the page up once.
    answer, own = await asyncio.gather(visit.source.topics(), visit.source.own_topics())
    hidden = own.value or frozenset()
    with_system = visit.query("system") == "1"
    names = [
        name for name in answer.value or () if with_system or not (is_system_topic(name) or name in hidden)
    ]
    found = paging(names, visit.query("q"), visit.query("page", "1"))
    return visit.render(
        "names.html",
        title="Topics",
        kind="topic",
        answer=answer,
        own=own,
        found=found,
        with_system=with_system,
        dead=DLQ_GROUP_TOPIC_PREFIX,
    )


async def show_queues(visit: Visit) -> Response:
    """Show every queue; a broker that hangs is named with the reason."""
    topic = visit.path("topic")

    async def values() -> Mapping[str, Any]:
        answer, rate = await asyncio.gather(visit.source.topic_queues(topic), visit.source.topic_rate(topic))
        rows = answer.value.rows if answer.value else {}
        page = _page(visit.query("page", "1"), len(rows))
        return {
            "title": topic,
            "status": answer.status,
            "answer": answer,
            "rows": [*islice(rows.items(), (page - 1) * _ROWS, page * _ROWS)],
            "page": page,
            "pages": max(1, -(-len(rows) // _ROWS)),
            "count": len(rows),
            **await visit.source.runtime.workers.run(_sums, rows),
            "rate": rate,
        }

    return await visit.live("topic.html", values, is_large=True)


def _sums(rows: Mapping[MessageQueue, TopicOffset]) -> dict[str, int]:
    """Return the messages of all queues, and when the last one was stored."""
    return {
        "messages": sum(row.max_offset - row.min_offset for row in rows.values()),
        "last": max((row.last_update_timestamp for row in rows.values()), default=0),
    }


async def show_groups(visit: Visit) -> Response:
    """Show the groups that have consumed the topic, as the brokers say."""
    topic = visit.path("topic")
    masters = await visit.source.masters(topic)
    admin = visit.source.admin
    groups: set[str] = set()
    problems: dict[str, str] = {}
    addresses = masters.value or {}
    answers = await visit.source.ask_each(
        addresses.values(), lambda address: admin.groups.broker_topic_groups(address, topic)
    )
    for name, address in addresses.items():
        answer = answers[address]
        if answer.value is None:
            problems[name] = answer.problem or ""
        else:
            groups.update(answer.value)
    return visit.render(
        "topic_groups.html",
        masters.status,
        title=topic,
        answer=masters,
        problem_table=problems,
        groups=sorted(group for group in groups if not group.startswith(RETRY_GROUP_TOPIC_PREFIX)),
    )


def _page(text: str, rows: int) -> int:
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 1
    return min(max(1, number), max(1, -(-rows // _ROWS)))


PAGES = (
    Page("/topics", show_list, "Topics", navigation="Topics", place=2),
    Page("/topics/{topic}", show_queues, "Queues"),
    Page("/topics/{topic}/groups", show_groups, "Groups"),
)
