"""What operators do with a graphical tool: the calls of RocketMQ's Dashboard, by its own admin client."""

from __future__ import annotations

import json
from typing import Any, Final

from rewindmq.client.msg_trace.records import DEFAULT_TRACE_TOPIC
from tools.interop.scenarios.scenario import SECONDS, InteropStage, OneOf, Outcome, scenario, texts, to_send

_COUNT: Final = 8
_KEY: Final = "the-key"
_COMES_BACK: Final = "a 5.5.0 broker was seen to have a deleted group again, configured like a new one"
_DEFAULTS: Final = [True, True, True, 1, 16, 0, 1, True]


@scenario(
    "dashboard",
    "the calls of RocketMQ's Dashboard, page by page",
    "producer.start",
    "send.ordered",
    "send.sync",
    "consume.concurrent",
    "admin.dashboard",
    "trace",
    "fail_times",
    "max_reconsume_times",
)
async def dashboard(stage: InteropStage) -> Outcome:
    topic = await stage.topic()
    producer = await stage.producer(trace=True)
    offline, consumer = await _groups(stage, topic, producer)
    failing = await _dead_letter(stage, producer)
    last = to_send(topic, ["last"], tags="A", keys=_KEY, sharding_key="0")
    (result,) = await stage.send(producer, last, "send.ordered")
    await stage.messages(consumer, _COUNT + 1)
    await stage.committed(topic, consumer, _COUNT + 1)
    await _indexed(stage, topic, _KEY, _COUNT + 1)
    await _indexed(stage, DEFAULT_TRACE_TOPIC, result["id"], 1)
    await stage.registered(producer)
    answer = await stage.driver.do(
        "admin.dashboard",
        seconds=SECONDS,
        name=stage.name("admin"),
        namesrv=stage.server.namesrv_address,
        prefix=stage.prefix,
        topic=topic,
        group=consumer,
        offline=offline,
        failing=failing,
        producer=producer,
        message_id=result["id"],
        key=_KEY,
    )
    pages: dict[str, Any] = json.loads(json.dumps(answer["pages"]).replace(f"{stage.prefix}-", ""))
    # The list of groups after a deletion.
    after = "configuration after the deletion"
    pages["consumer"][after] = OneOf(_COMES_BACK, (None, _DEFAULTS), pages["consumer"][after])
    return pages


async def _groups(stage: InteropStage, topic: str, producer: str) -> tuple[str, str]:
    """Have two groups consume the same messages; return the group that stopped and the group that runs."""
    messages = to_send(topic, texts(_COUNT), tags="A", keys=_KEY)
    # A reset is refused as long as a queue has no offset, so every queue gets messages.
    keyed = [message | {"sharding_key": str(place)} for place, message in enumerate(messages)]
    await stage.send(producer, keyed, "send.ordered")
    offline, consumer = await stage.consumer(topic, "offline"), await stage.consumer(topic)
    for group in (offline, consumer):
        await stage.messages(group, _COUNT)
        await stage.committed(topic, group, _COUNT)
    await stage.stop(offline)

    async def is_offline() -> bool:
        return not await stage.consumer_ids(offline)

    await stage.reached(is_offline, lambda: f"{offline} has consumers")
    return offline, consumer


async def _dead_letter(stage: InteropStage, producer: str) -> str:
    """Have a group fail a message until it is a dead letter; return the group."""
    topic = await stage.topic("doomed", queues=1)
    group = await stage.consumer(topic, "failing", fail_times=1, max_reconsume_times=0)
    await stage.send(producer, to_send(topic, ["dead"]))
    letters = f"%DLQ%{group}"
    await stage.wait_route(letters)
    await stage.stored(letters, 1)
    return group


async def _indexed(stage: InteropStage, topic: str, key: str, count: int) -> None:
    """Wait until the broker finds ``count`` messages by a key: its index follows the log."""
    found = 0

    async def are_found() -> bool:
        nonlocal found
        found = len(await stage.asked(stage.admin.messages.query_message(topic, key)) or ())
        return found >= count

    await stage.reached(are_found, lambda: f"{found} of {count} messages of {topic} have the key {key}")
