"""Message traces: what producers and consumers record of their messages, and finding it again."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from rewindmq.client import ResponseError
from rewindmq.client.msg_trace.records import DEFAULT_TRACE_TOPIC, Pub, SubAfter, TraceRecord, decode
from tools.interop.scenarios.scenario import Outcome, Stage, scenario, to_send

_KINDS: Final = ["Pub", "SubAfter", "SubBefore"]
_TRACE_SECONDS: Final = 60.0
_ASK_SECONDS: Final = 0.5


@scenario(
    "trace", "traces of sending and consuming", "producer.start", "send.sync", "consume.concurrent", "trace"
)
async def trace(stage: Stage) -> Outcome:
    topic = await stage.topic()
    producer = await stage.producer(trace=True)
    consumer = await stage.consumer(topic, trace=True)
    (result,) = await stage.send(producer, to_send(topic, ["body"], tags="A", keys="k"))
    await stage.driver.messages(consumer, 1)
    records = await _recorded(stage, result["id"])
    (sent,) = (record for record in records if isinstance(record, Pub))
    afters = [record for record in records if isinstance(record, SubAfter)]
    assert (sent.group, sent.topic, sent.tags, sent.keys) == (producer, topic, "A", "k")
    assert sent.success
    assert all(after.success for after in afters)
    lines = await stage.admin.query_message_trace(result["id"])
    return {
        "kinds": [type(record).__name__ for record in records],
        "sent": (sent.message_type, sent.body_length, sent.region, bool(sent.offset_msg_id)),
        "consumed": [(after.keys, after.context_code) for after in afters],
        # Go's producer takes the time of its record when it has the answer: a consumer may have been faster.
        "lines": sorted((line.kind, line.status) for line in lines),
    }


async def _recorded(stage: Stage, message_id: str) -> list[TraceRecord]:
    """The records of one message, once there is one of each kind, or after a while.

    Java's consumers of 5.x record nothing of a message without MSG_REGION, which brokers of 4.x do not store.
    """
    records: list[TraceRecord] = []
    try:
        async with asyncio.timeout(_TRACE_SECONDS):
            while sorted(type(record).__name__ for record in records) != _KINDS:
                await asyncio.sleep(_ASK_SECONDS)
                records = [r for r in await _found(stage, message_id) if r.msg_id == message_id]
    except TimeoutError:
        pass
    return sorted(records, key=lambda record: type(record).__name__)


async def _found(stage: Stage, message_id: str) -> list[Any]:
    try:
        messages = await stage.admin.query_message(DEFAULT_TRACE_TOPIC, message_id)
    except ResponseError:
        # Nothing is recorded yet, or not even the topic is there.
        return []
    return [record for message in messages for record in decode(message.body.decode())]
