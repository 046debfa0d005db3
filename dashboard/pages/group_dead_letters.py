"""A group's dead letters: the messages that failed too often; some of them sent to the group again."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from rewindmq.dashboard.data.answer import Answer
from rewindmq.dashboard.data.dead_letters import MAX_RESENT, Letter, resend
from rewindmq.dashboard.data.messages import FoundMessages, message_at, newest
from rewindmq.dashboard.web.bodies import excerpt
from rewindmq.dashboard.web.numbers import number_below
from rewindmq.dashboard.web.page import Page, Visit
from rewindmq.protocol.message.properties import RETRY_TOPIC
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import dlq_topic, retry_topic

# Form fields of the chosen letters begin so.
_FIELD: Final = "letter-"


async def show(visit: Visit) -> Response:
    """Show the newest messages of the group's dead-letter topic; with the query ``letter``, only that one."""
    group, text = visit.path("group"), visit.query("letter")
    topic = dlq_topic(group)
    answer = await _find(visit, topic, text)
    status = 400 if answer is None else answer.status
    messages = answer.value.messages if answer and answer.value else []
    rows = [
        (
            Letter(message.broker_name, message.queue_id, message.queue_offset),
            message,
            message.properties.get(RETRY_TOPIC, ""),
            excerpt(message),
        )
        for message in messages
    ]
    absent, has_none = None, False
    if answer and not text and (answer.is_absent or _is_empty(answer.value)):
        has_none = True
        known = await visit.source.group_masters(group)
        absent, status = (known, 404) if known.is_absent else (None, 200)
    return visit.render(
        "dead_letters.html",
        status,
        title=group,
        topic=topic,
        answer=answer,
        rows=rows,
        has_none=has_none,
        is_one=bool(text),
        absent=absent,
    )


def _is_empty(found: FoundMessages | None) -> bool:
    """True if every broker answered, and none has a message."""
    return found is not None and not found.messages and not found.problems


async def _find(visit: Visit, topic: str, place: str) -> Answer[FoundMessages] | None:
    """Return the newest dead letters, or the one of a place; None: the text names no place."""
    if not place:
        return await newest(visit.source, topic)
    letter = _letter(place)
    if letter is None:
        return None
    queue = MessageQueue(topic, letter.broker, letter.queue)
    one = await message_at(visit.source, queue, letter.offset)
    return Answer(FoundMessages([one.value])) if one.value else one.failed()


async def send_again(visit: Visit) -> Response:
    """Send a copy of each chosen dead letter to the group, and show what became of each."""
    group = visit.path("group")
    texts = dict.fromkeys(value for name, value in visit.form.items() if name.startswith(_FIELD))
    letters = [letter for letter in map(_letter, texts) if letter is not None]
    problem = None
    if len(letters) < len(texts):
        problem = "The form names a place that is none. Load the page of dead letters, and choose again."
    elif not letters:
        problem = "No dead letter is chosen. Go back, and tick those to send again."
    elif len(letters) > MAX_RESENT:
        problem = f"At most {MAX_RESENT} dead letters are sent at a time. Go back, and choose fewer."
    if problem:
        return _results(visit, 400, problem=problem, results=[])
    return _results(visit, 200, problem=None, results=await resend(visit.source, group, letters))


def _results(visit: Visit, status: int, **values: object) -> Response:
    group = visit.path("group")
    return visit.render(
        "resent.html", status, title=group, dead=dlq_topic(group), retry=retry_topic(group), **values
    )


def _letter(text: str) -> Letter | None:
    """Return the place that ``BROKER/QUEUE/OFFSET`` names; None: the text is none."""
    broker, *numbers = text.rsplit("/", 2)
    if not broker or len(numbers) != 2:
        return None
    queue, offset = number_below(numbers[0], 2**31), number_below(numbers[1], 2**63)
    return None if queue is None or offset is None else Letter(broker, queue, offset)


PAGES = (
    Page("/groups/{group}/dead-letters", show, "Dead letters"),
    Page("/groups/{group}/dead-letters", send_again, "Dead letters", methods=("POST",)),
)
