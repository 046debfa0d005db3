"""Send one message to a topic."""

from __future__ import annotations

from starlette.responses import RedirectResponse, Response

from rewindmq.client.produce.producer import Producer
from rewindmq.client.produce.send_result import SendResult
from rewindmq.dashboard.data.dead_letters import PRODUCER_GROUP
from rewindmq.dashboard.web.links import message_href
from rewindmq.dashboard.web.page import Page, Visit
from rewindmq.protocol.message import Message


async def show(visit: Visit) -> Response:
    """Show the form."""
    return _form(visit, None)


async def send(visit: Visit) -> Response:
    """Send the form's message, and lead to its page; a topic that does not exist is not created."""
    topic = visit.path("topic")
    route = await visit.source.masters(topic)
    if route.value is None:
        return _form(visit, f"Nothing was sent: {route.problem}.")
    answer = await visit.source.ask(_send(visit, topic))
    if answer.value is None:
        sent = "The send failed" if answer.code is not None else "The message may have been stored or not"
        return _form(visit, f"{sent}: {answer.problem}.")
    _, broker, queue_id = answer.value.message_queue
    return RedirectResponse(message_href(topic, broker, queue_id, answer.value.queue_offset), 303)


async def _send(visit: Visit, topic: str) -> SendResult:
    source, form = visit.source, visit.form
    body = form.get("body", "").encode("utf-8", "surrogatepass")
    message = Message(topic, body, form.get("tag", "").strip() or None, form.get("keys", "").split() or None)
    namesrv = ";".join(source.admin.namesrv_addresses)
    # Not repeated: a visitor who is told of a failure decides.
    async with Producer(
        PRODUCER_GROUP, namesrv, retry_times_when_send_failed=0, runtime=source.runtime
    ) as producer:
        return await producer.send(message)


def _form(visit: Visit, problem: str | None) -> Response:
    values = {name: visit.form.get(name, "") for name in ("body", "tag", "keys")}
    return visit.render("send.html", title=visit.path("topic"), problem=problem, values=values)


PAGES = (
    Page("/topics/{topic}/send", show, "Send"),
    Page("/topics/{topic}/send", send, "Send", methods=("POST",)),
)
