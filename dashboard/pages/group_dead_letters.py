"""A group's dead letters: the messages that failed too often."""

from __future__ import annotations

from starlette.responses import Response

from rewindmq.dashboard.data.messages import newest
from rewindmq.dashboard.web.bodies import excerpt
from rewindmq.dashboard.web.page import Page, Visit
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.names import dlq_topic


async def show(visit: Visit) -> Response:
    """Show the newest messages of the group's dead-letter topic."""
    group = visit.path("group")
    topic = dlq_topic(group)
    answer = await newest(visit.source, topic)
    rows = [(message, excerpt(message)) for message in answer.value.messages] if answer.value else []
    has_none = answer.code == ResponseCode.TOPIC_NOT_EXIST or (answer.value is not None and not rows)
    return visit.render(
        "dead_letters.html", title=group, topic=topic, answer=answer, rows=rows, has_none=has_none
    )


PAGES = (Page("/groups/{group}/dead-letters", show, "Dead letters"),)
