"""Messages of a topic: the newest, by id, key, time or queue; one message with its body."""

from __future__ import annotations

import re
from typing import Final

from starlette.responses import PlainTextResponse, Response

from rewindmq.dashboard.data.answer import Answer
from rewindmq.dashboard.data.messages import (
    MAX_SKIP,
    PAGE_MESSAGES,
    FoundMessages,
    by_id,
    by_key,
    message_at,
    newest,
    of_queue,
    since,
)
from rewindmq.dashboard.web.bodies import excerpt, readable_body, shown_body
from rewindmq.dashboard.web.downloads import download
from rewindmq.dashboard.web.numbers import milliseconds, number_below
from rewindmq.dashboard.web.page import Page, Visit
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import DLQ_GROUP_TOPIC_PREFIX
from rewindmq.protocol.text import escape_controls

# The ways to find messages; each is a value of the query ``by``.
WAYS: Final = ("newest", "key", "id", "time", "queue")
_INT32: Final = 2**31
_OFFSET: Final = 2**63
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.-]")


async def show_list(visit: Visit) -> Response:
    """Show the messages that the query asks for; without one, the newest."""
    topic = visit.path("topic")
    by = visit.query("by", "newest")
    by = by if by in WAYS else "newest"
    answer, wrong = await _find(visit, topic, by)
    rows = (
        [(message, excerpt(message)) for message in answer.value.messages] if answer and answer.value else []
    )
    queue = (
        visit.query("broker"),
        number_below(visit.query("queue"), _INT32),
        number_below(visit.query("offset"), _OFFSET),
    )
    return visit.render(
        "messages.html",
        400 if wrong else answer.status if answer else 200,
        title=topic,
        by=by,
        answer=answer,
        wrong=wrong,
        rows=rows,
        queue=queue,
        page_messages=PAGE_MESSAGES,
        later=_later(visit, answer.value) if by == "time" and answer and answer.value else None,
        at=milliseconds(visit.query("at")),
    )


async def _find(visit: Visit, topic: str, by: str) -> tuple[Answer[FoundMessages] | None, str | None]:
    """Return what was found, or None and what is wrong with the query; both None: nothing was asked yet."""
    source, text = visit.source, visit.query("q").strip()
    if by == "newest":
        return await newest(source, topic), None
    if by == "queue":
        queue, offset = (
            number_below(visit.query("queue"), _INT32),
            number_below(visit.query("offset"), _OFFSET),
        )
        if queue is None or offset is None:
            return None, "Queue and offset are numbers from 0 on."
        return await of_queue(source, MessageQueue(topic, visit.query("broker"), queue), offset), None
    if by == "time":
        if not visit.query("at"):
            return None, None
        begin = milliseconds(visit.query("at"))
        if begin is None:
            return None, "Enter a time such as 2026-01-31T12:00:00, in UTC, or milliseconds since 1970."
        return await since(source, topic, begin, number_below(visit.query("skip", "0"), MAX_SKIP) or 0), None
    if not text:
        return None, None
    return await (by_key if by == "key" else by_id)(source, topic, text), None


def _later(visit: Visit, found: FoundMessages) -> tuple[int, int] | None:
    """Return time and number of messages to skip of the next page; None: this one is the last."""
    if len(found.messages) < PAGE_MESSAGES:
        return None
    last = found.messages[-1].store_timestamp
    skip = sum(message.store_timestamp == last for message in found.messages)
    if milliseconds(visit.query("at")) == last:
        skip += number_below(visit.query("skip", "0"), MAX_SKIP) or 0
    # More messages in one millisecond than a search reads: go on with the next.
    return (last, skip) if skip < MAX_SKIP else (last + 1, 0)


async def show_one(visit: Visit) -> Response:
    """Show one message: its body, bounded, and all of its properties."""
    answer = await _message(visit)
    title = f"{visit.path('broker')}/{visit.path('queue')} @ {visit.path('offset')}"
    if answer.value is None:
        return visit.render(
            "message.html", answer.status, title=title, answer=answer, message=None, gave_up=None
        )
    message, topic = answer.value, visit.path("topic")
    properties = {
        escape_controls(name): escape_controls(value) for name, value in sorted(message.properties.items())
    }
    return visit.render(
        "message.html",
        title=title,
        answer=answer,
        message=message,
        # In a thread: a small compressed body may inflate to 64 MiB.
        body=await visit.source.runtime.workers.run(shown_body, message),
        properties=properties,
        gave_up=topic.removeprefix(DLQ_GROUP_TOPIC_PREFIX)
        if topic.startswith(DLQ_GROUP_TOPIC_PREFIX)
        else None,
    )


async def download_body(visit: Visit) -> Response:
    """Return the body as a file, so that no browser shows it as a page of this site."""
    answer = await _message(visit)
    if answer.value is None:
        # 502: a server behind this one did not do its part.
        return PlainTextResponse(f"{answer.sentence}\n", 404 if answer.is_absent else 502)
    name = _UNSAFE.sub("_", f"{visit.path('topic')}-{visit.path('queue')}-{visit.path('offset')}")
    body, _ = await visit.source.runtime.workers.run(readable_body, answer.value)
    return download(body, f"{name}.bin", visit.source.runtime.timers)


async def _message(visit: Visit) -> Answer[MessageExt]:
    queue, offset = number_below(visit.path("queue"), _INT32), number_below(visit.path("offset"), _OFFSET)
    if queue is None or offset is None:
        return Answer(None, "queue and offset are numbers from 0 on", ResponseCode.NO_MESSAGE)
    return await message_at(
        visit.source, MessageQueue(visit.path("topic"), visit.path("broker"), queue), offset
    )


PAGES = (
    Page("/topics/{topic}/messages", show_list, "Messages"),
    Page("/topics/{topic}/messages/{broker}/{queue}/{offset}", show_one, "Message"),
    Page("/topics/{topic}/messages/{broker}/{queue}/{offset}/body", download_body, "Body"),
)
