"""Message traces: what producers and consumers record of their messages, and how to query it."""

from __future__ import annotations

from typing import Final

from rewindmq.client.msg_trace.records import DEFAULT_TRACE_TOPIC, Pub, SubAfter, TraceRecord, decode
from tools.interop.scenarios.scenario import InteropStage, Outcome, scenario, to_send

_KINDS: Final = ("Pub", "SubAfter", "SubBefore")
# Java consumers of 5.x record nothing of a message without MSG_REGION, which brokers of 4.x do not store: the
# releases of these libraries that have such a consumer begin with this.
_BY_REGION: Final = {"rocketmq-client": "5.", "spring-cloud-starter-stream-rocketmq": ""}


@scenario(
    "trace", "traces of sending and consuming", "producer.start", "send.sync", "consume.concurrent", "trace"
)
async def trace(stage: InteropStage) -> Outcome:
    topic = await stage.topic()
    producer = await stage.producer(trace=True)
    consumer = await stage.consumer(topic, trace=True)
    (result,) = await stage.send(producer, to_send(topic, ["body"], tags="A", keys="k"))
    (message,) = await stage.messages(consumer, 1)
    since = _BY_REGION.get(stage.driver.client)
    is_by_region = since is not None and stage.driver.version.startswith(since)
    kinds = _KINDS[:1] if is_by_region and "MSG_REGION" not in message["properties"] else _KINDS
    records = await _recorded(stage, result["id"], kinds)
    (sent,) = (record for record in records if isinstance(record, Pub))
    afters = [record for record in records if isinstance(record, SubAfter)]
    assert (sent.group, sent.topic, sent.tags, sent.keys) == (producer, topic, "A", "k")
    assert sent.success
    assert all(after.success for after in afters)
    lines = await stage.admin.messages.query_message_trace(result["id"])
    return {
        "kinds": [type(record).__name__ for record in records],
        "sent": (sent.message_type, sent.body_length, sent.region, bool(sent.offset_msg_id)),
        "consumed": [(after.keys, after.context_code) for after in afters],
        # Go's producer stamps its record when it has the answer: a consumer may have been faster.
        "lines": sorted({(line.kind, line.status) for line in lines}),
    }


async def _recorded(stage: InteropStage, message_id: str, kinds: tuple[str, ...]) -> list[TraceRecord]:
    """Wait until a message has a record of each of these kinds; return its records."""
    records: list[TraceRecord] = []

    async def are_there() -> bool:
        found = [record for record in await _found(stage, message_id) if record.msg_id == message_id]
        # A record is stored twice if the library has sent it twice.
        once = [record for place, record in enumerate(found) if record not in found[:place]]
        records[:] = sorted(once, key=lambda record: type(record).__name__)
        return tuple(type(record).__name__ for record in records) == kinds

    await stage.reached(are_there, lambda: f"recorded: {records}")
    return records


async def _found(stage: InteropStage, message_id: str) -> list[TraceRecord]:
    # The broker refuses if no trace is recorded yet or the trace topic does not exist.
    messages = await stage.asked(stage.admin.messages.query_message(DEFAULT_TRACE_TOPIC, message_id)) or ()
    return [record for message in messages for record in decode(message.body.decode())]
