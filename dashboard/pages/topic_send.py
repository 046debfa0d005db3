"""Send one message to a topic."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from starlette.responses import RedirectResponse, Response

from rewindmq.client.produce.producer import Producer
from rewindmq.client.produce.resend import UNSENT
from rewindmq.client.produce.send_result import SendResult
from rewindmq.dashboard.data.answer import LIMIT_SECONDS, Answer, NoAnswer
from rewindmq.dashboard.data.dead_letters import PREPARE_SECONDS, PRODUCER_API_MS, PRODUCER_GROUP
from rewindmq.dashboard.web.links import message_href
from rewindmq.dashboard.web.page import Page, Visit
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.message import Message


async def show(visit: Visit) -> Response:
    """Show the form; it is none for a topic that does not exist."""
    return _form(visit, await visit.source.masters(visit.path("topic")), None)


async def send(visit: Visit) -> Response:
    """Send the form's message, and lead to its page; a topic that does not exist is not created."""
    topic = visit.path("topic")
    route = await visit.source.masters(topic)
    if route.value is None:
        why = f"{route.problem}." if route.is_absent else route.sentence
        return _form(visit, route, f"Nothing was sent: {why}")
    answer = await _send(visit, topic)
    if answer.value is None:
        return _form(visit, route, _explain(answer))
    _, broker, queue_id = answer.value.message_queue
    return RedirectResponse(message_href(topic, broker, queue_id, answer.value.queue_offset), 303)


async def _send(visit: Visit, topic: str) -> Answer[SendResult]:
    source, form = visit.source, visit.form
    body = form.get("body", "").encode("utf-8", "surrogatepass")
    message = Message(topic, body, form.get("tag", "").strip() or None, form.get("keys", "").split() or None)
    # Not repeated: a visitor who is told of a failure decides.
    producer = Producer(
        PRODUCER_GROUP,
        ";".join(source.admin.namesrv_addresses),
        retry_times_when_send_failed=0,
        mq_client_api_timeout=PRODUCER_API_MS,
        runtime=source.runtime,
    )
    try:
        # Each step has its own time limit: nothing was sent if one before the last takes too long.
        for step in (producer.start, partial(producer.fetch_publish_message_queues, topic)):
            prepared: Answer[object] = await source.ask(step(), PREPARE_SECONDS, "The producer")
            if prepared.problem is not None:
                return replace(prepared.failed(), error=ClientError(prepared.problem))
        return await source.ask(producer.send(message, LIMIT_SECONDS), LIMIT_SECONDS + 1)
    finally:
        await source.ask(producer.shutdown())


def _explain(answer: Answer[SendResult]) -> str:
    """Return what became of the message; only a request that left may have stored it."""
    if isinstance(answer.error, UNSENT):
        return f"Nothing was sent: {answer.problem}."
    if answer.outcome is NoAnswer.REFUSED:
        return f"The broker refused the message: {answer.problem}."
    return (
        f"The message may have been stored or not: {answer.problem}. Look at the topic's newest messages"
        " before you send it again."
    )


def _form(visit: Visit, route: Answer[dict[str, str]], problem: str | None) -> Response:
    values = {name: visit.form.get(name, "") for name in ("body", "tag", "keys")}
    return visit.render(
        "send.html", route.status, title=visit.path("topic"), answer=route, problem=problem, values=values
    )


PAGES = (
    Page("/topics/{topic}/send", show, "Send"),
    Page("/topics/{topic}/send", send, "Send", methods=("POST",)),
)
