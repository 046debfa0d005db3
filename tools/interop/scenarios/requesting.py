"""Requests and replies: between clients of one library, and between a library and RewindMQ's client."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from rewindmq import ConsumeConcurrentlyStatus, MessageExt, Producer, PushConsumer, create_reply_message
from rewindmq import Message as OwnMessage
from tools.interop.scenarios.scenario import (
    SECONDS,
    InteropStage,
    Message,
    Outcome,
    failure,
    looks,
    scenario,
    to_send,
)

_PATIENT_MS: Final = int(SECONDS * 1_000)
# The time-out is under test. The send of the request must be confirmed in it, also on a busy machine.
_UNANSWERED_MS: Final = 20_000


@scenario(
    "request-reply",
    "a request and its reply; no reply, a late reply, a requester that has gone",
    "producer.start",
    "send.request",
    "send.reply",
    "consume.concurrent",
)
async def request_reply(stage: InteropStage) -> Outcome:
    topic = await stage.topic()
    consumer = await stage.consumer(topic)
    replier = await stage.producer("replier")
    requester, leaver = await stage.producer(), await stage.producer("leaver")

    async def answered(body: str, place: int) -> tuple[Message, Message]:
        """Have the requester send a request, reply to it, and return both as they were received."""
        async with asyncio.TaskGroup() as tasks:
            asking = tasks.create_task(_request(stage, requester, topic, body))
            request = (await stage.messages(consumer, place + 1))[place]
            assert request["body"] == body
            await stage.registered(requester)
            await _reply(stage, replier, request, f"reply to {body}")
        return request, asking.result()

    request, reply = await answered("first", 0)
    assert reply["body"] == "reply to first"
    unanswered = await asyncio.gather(
        *(failure(_request(stage, name, topic, name, _UNANSWERED_MS)) for name in (requester, leaver))
    )
    await stage.stop(leaver)
    late = {message["body"]: message for message in (await stage.messages(consumer, 3))[1:]}
    after_time_out = await _reply(stage, replier, late[requester], "late")
    to_nobody = await failure(_reply(stage, replier, late[leaver], "late"))
    # The late reply is not taken for this request's.
    _, last = await answered("last", 3)
    assert last["body"] == "reply to last"
    await stage.send(replier, to_send(topic, ["no request"]))
    ordinary = (await stage.messages(consumer, 5))[4]
    return {
        "request": looks(request),
        "reply": looks(reply) | {"topic": reply["topic"]},
        "unanswered": unanswered,
        "reply after the time-out": after_time_out["status"],
        "reply to a requester that has gone": to_nobody,
        "reply to a message that is no request": await failure(_reply(stage, replier, ordinary, "x")),
    }


@scenario(
    "request-to-rewindmq",
    "a request that RewindMQ's client answers",
    "producer.start",
    "send.request",
    "send.sync",
)
async def request_to_rewindmq(stage: InteropStage) -> Outcome:
    topic, other = await stage.topic(), await stage.topic("other")
    requester = await stage.producer()
    namesrv, name = stage.server.namesrv_address, stage.name("own")
    replier = Producer(f"{name}-replier", namesrv, mq_client_api_timeout=_PATIENT_MS)
    consumer = PushConsumer(name, namesrv, consume_from="first", mq_client_api_timeout=_PATIENT_MS)

    async def reply_to(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        await stage.registered(requester)
        # rocketmq-client-rust loses a reply that comes before the confirmation of its request's send: only a
        # request that waits already is woken (RequestResponseFuture). A later send is confirmed later.
        await stage.send(requester, to_send(other, ["after the request"]))
        for message in messages:
            await replier.send(create_reply_message(message, b"reply to " + message.body), SECONDS)
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    consumer.subscribe(topic)
    consumer.register_message_listener(reply_to)
    async with replier, consumer:
        reply = await _request(stage, requester, topic, "request")
    assert reply["body"] == "reply to request"
    return {"reply": looks(reply)}


@scenario(
    "reply-to-rewindmq",
    "a reply to a request of RewindMQ's client",
    "producer.start",
    "send.reply",
    "consume.concurrent",
)
async def reply_to_rewindmq(stage: InteropStage) -> Outcome:
    topic = await stage.topic()
    consumer = await stage.consumer(topic)
    replier = await stage.producer("replier")
    group, namesrv = stage.name("own"), stage.server.namesrv_address
    async with (
        Producer(group, namesrv, mq_client_api_timeout=_PATIENT_MS) as requester,
        asyncio.TaskGroup() as tasks,
    ):
        asking = tasks.create_task(requester.request(OwnMessage(topic, b"request"), timeout=SECONDS))
        (request,) = await stage.messages(consumer, 1)
        await stage.registered(group)
        await _reply(stage, replier, request, "reply")
        reply = await asking
    assert reply.body == b"reply"
    return {"request": looks(request), "reply": sorted(reply.properties)}


async def _request(
    stage: InteropStage, producer: str, topic: str, body: str, timeout_ms: int = _PATIENT_MS
) -> Message:
    """Send a request and return its reply."""
    (message,) = to_send(topic, [body])
    answer = await stage.driver.do(
        "send.request", producer=producer, message=message, timeout_ms=timeout_ms, seconds=2 * SECONDS
    )
    reply: Message = answer["message"]
    return reply


async def _reply(stage: InteropStage, producer: str, request: Message, body: str) -> dict[str, Any]:
    """Send a reply and return the library's result."""
    answer = await stage.driver.do("send.reply", producer=producer, request=request, body=body)
    results: list[dict[str, Any]] = answer["results"]
    return results[0]
