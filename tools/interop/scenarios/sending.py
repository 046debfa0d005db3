"""Every way to send except transactions."""

from __future__ import annotations

import random
import time
from typing import Final

from tools.interop.scenarios.scenario import (
    InteropStage,
    Message,
    Outcome,
    failure,
    looks,
    scenario,
    texts,
    to_send,
)

_DELAY_SECONDS: Final = 1.0
_SEED: Final = 6
_NEARLY_TOO_LARGE: Final = (4 << 20) - 4096
_TOO_LARGE: Final = (4 << 20) + 1
# More than any body, so that no body is compressed.
_NEVER: Final = 1 << 30


async def _all_delivered(stage: InteropStage, topic: str, bodies: list[str]) -> list[Message]:
    """Assert that every body is delivered once; return the messages in the order of their bodies."""
    consumer = await stage.consumer(topic)
    messages = await stage.messages(consumer, len(bodies))
    assert sorted(message["body"] for message in messages) == sorted(bodies)
    return sorted(messages, key=lambda message: str(message["body"]))


@scenario("send-sync", "send and wait for the answer", "producer.start", "send.sync", "consume.concurrent")
async def send_sync(stage: InteropStage) -> Outcome:
    topic = await stage.topic()
    producer = await stage.producer()
    bodies = texts(8)
    messages = to_send(topic, bodies, tags="A", keys="k1 k2", properties={"colour": "blue"})
    results = await stage.send(producer, messages)
    assert len({(result["queue"], result["offset"]) for result in results}) == len(bodies)
    delivered = await _all_delivered(stage, topic, bodies)
    for message in delivered:
        assert (message["tags"], message["keys"]) == ("A", "k1 k2")
        assert message["properties"] is None or message["properties"]["colour"] == "blue"
        assert message["store_host"] in (None, stage.server.broker_address)
    return {"message": looks(delivered[0]), "region": results[0].get("region")}


@scenario("send-async", "send without waiting", "producer.start", "send.async", "consume.concurrent")
async def send_async(stage: InteropStage) -> Outcome:
    topic = await stage.topic()
    producer = await stage.producer()
    bodies = texts(64)
    await stage.send(producer, to_send(topic, bodies), "send.async")
    delivered = await _all_delivered(stage, topic, bodies)
    return {"message": looks(delivered[0])}


@scenario("send-oneway", "send without an answer", "producer.start", "send.oneway", "consume.concurrent")
async def send_oneway(stage: InteropStage) -> Outcome:
    topic = await stage.topic()
    producer = await stage.producer()
    bodies = texts(16)
    answer = await stage.driver.do("send.oneway", producer=producer, messages=to_send(topic, bodies))
    assert answer == {}
    delivered = await _all_delivered(stage, topic, bodies)
    return {"message": looks(delivered[0])}


@scenario("send-batch", "send many in one request", "producer.start", "send.batch", "consume.concurrent")
async def send_batch(stage: InteropStage) -> Outcome:
    topic = await stage.topic()
    producer = await stage.producer()
    bodies = texts(16)
    (result,) = await stage.send(producer, to_send(topic, bodies, tags="A", keys="k"), "send.batch")
    delivered = await _all_delivered(stage, topic, bodies)
    assert [m["offset"] for m in sorted(delivered, key=lambda m: bodies.index(m["body"]))] == list(range(16))
    assert {message["queue"] for message in delivered} == {result["queue"]}
    # One id for each message, with commas between.
    names = {name: len(result[name].split(",")) for name in ("id", "offset_id") if result.get(name)}
    return {"message": looks(delivered[0]), "offset": result["offset"], "ids": names}


@scenario("send-delayed", "delay levels", "producer.start", "send.delayed", "consume.concurrent")
async def send_delayed(stage: InteropStage) -> Outcome:
    topic = await stage.topic()
    producer = await stage.producer()
    bodies = texts(4)
    sent = time.monotonic()
    await stage.send(producer, to_send(topic, bodies, delay_level=1), "send.delayed")
    delivered = await _all_delivered(stage, topic, bodies)
    assert time.monotonic() - sent >= _DELAY_SECONDS
    return {"message": looks(delivered[0]), "topics": sorted({m["topic"] == topic for m in delivered})}


@scenario(
    "send-compressed",
    "bodies that the client compresses",
    "producer.start",
    "send.sync",
    "consume.concurrent",
)
async def send_compressed(stage: InteropStage) -> Outcome:
    topic = await stage.topic()
    producer = await stage.producer()
    bodies = [f"{number} " + "compressible " * 8000 for number in range(4)]
    await stage.send(producer, to_send(topic, bodies))
    delivered = await _all_delivered(stage, topic, bodies)
    return {"message": looks(delivered[0])}


@scenario("send-large", "bodies of nearly 4 MiB", "producer.start", "send.sync", "consume.concurrent")
async def send_large(stage: InteropStage) -> Outcome:
    topic = await stage.topic(queues=1)
    producer = await stage.producer(compress_over=_NEVER)
    chance = random.Random(_SEED)
    bodies = [chance.randbytes(_NEARLY_TOO_LARGE // 2).hex() for _ in range(2)]
    await stage.send(producer, to_send(topic, bodies))
    delivered = await _all_delivered(stage, topic, bodies)
    return {"message": looks(delivered[0])}


@scenario("send-too-large", "a body over 4 MiB is refused", "producer.start", "send.sync")
async def send_too_large(stage: InteropStage) -> Outcome:
    topic = await stage.topic()
    messages = to_send(topic, ["x" * _TOO_LARGE])
    careful = await stage.producer(compress_over=_NEVER)
    # The producer's own limit is above the broker's, so that the broker must refuse.
    careless = await stage.producer("careless", compress_over=_NEVER, max_message_size=_TOO_LARGE * 2)
    sends = (stage.driver.do("send.sync", producer=name, messages=messages) for name in (careful, careless))
    outcome = dict(zip(("by client", "by broker"), [await failure(send) for send in sends], strict=True))
    # The connection still works.
    await stage.send(careless, to_send(topic, ["small"]))
    return outcome


@scenario("send-unwritable", "a topic that may only be read", "producer.start", "send.sync")
async def send_unwritable(stage: InteropStage) -> Outcome:
    topic = await stage.topic(perm=4)
    producer = await stage.producer()
    return await failure(stage.driver.do("send.sync", producer=producer, messages=to_send(topic, ["body"])))


@scenario(
    "send-new-topic",
    "the first message creates its topic",
    "producer.start",
    "send.sync",
    "consume.concurrent",
    "new_topic",
)
async def send_new_topic(stage: InteropStage) -> Outcome:
    topic = stage.name("not-created")
    producer = await stage.producer()
    bodies = texts(8)
    results = await stage.send(producer, to_send(topic, bodies))
    await stage.wait_route(topic)
    await _all_delivered(stage, topic, bodies)
    (queues,) = (await stage.admin.topics.examine_topic_route_info(topic)).queue_datas
    return {
        "queues": (queues.read_queue_nums, queues.write_queue_nums, queues.perm),
        "used": sorted({result["queue"] for result in results}),
    }
