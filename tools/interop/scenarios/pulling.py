"""Lite pull and pull consumers."""

from __future__ import annotations

import time
from typing import Any, Final

from tools.interop.driver import DriverError
from tools.interop.scenarios.scenario import (
    SECONDS,
    InteropStage,
    Message,
    Outcome,
    failure,
    looks,
    scenario,
    texts,
    to_send,
    within,
)

_POLL_MS: Final = 1000
_HOUR_MS: Final = 3_600_000


async def _poll(stage: InteropStage, consumer: str, count: int) -> list[Message]:
    messages: list[Message] = []
    stage.has_begun()
    async with within(SECONDS, lambda: f"{len(messages)} of {count} messages polled"):
        while len(messages) < count:
            answer = await stage.driver.do("lite.poll", consumer=consumer, timeout_ms=_POLL_MS)
            messages += answer["messages"]
    return messages


@scenario(
    "lite-pull",
    "lite pull",
    "producer.start",
    "send.sync",
    "lite.start",
    "lite.poll",
    "lite.commit",
    "lite.stop",
)
async def lite_pull(stage: InteropStage) -> Outcome:
    """Committed messages are not delivered again; messages that were only polled are."""
    topic = await stage.topic()
    producer = await stage.producer()
    first, second = texts(16), texts(8, "later")
    await stage.send(producer, to_send(topic, first, tags="A"))
    group = stage.name("group")
    consumer = await stage.consumer(topic, op="lite.start", group=group)
    messages = await _poll(stage, consumer, len(first))
    assert sorted(m["body"] for m in messages) == sorted(first)
    await stage.driver.do("lite.commit", consumer=consumer)
    # A RocketMQ broker may lose one of a new group's first commits if they arrive together: each creates the
    # group's table (ConsumerOffsetManager#commitOffset). The client's next persist repairs it.
    await stage.committed(topic, group, len(first))
    await stage.stop(consumer)
    await stage.send(producer, to_send(topic, second, tags="A"))
    for name in ("polls", "polls-again"):
        consumer = await stage.consumer(topic, name, op="lite.start", group=group, expression="A || B")
        polled = sorted(m["body"] for m in await _poll(stage, consumer, len(second)))
        assert polled == sorted(second), f"{name}: {polled}"
        await stage.stop(consumer)
    return {"message": looks(messages[0])}


async def _clock_moves(stage: InteropStage) -> None:
    began = time.time_ns() // 1_000_000
    await stage.until(lambda: time.time_ns() // 1_000_000 > began + 1, lambda: "the clock did not advance")


async def _send_apart(stage: InteropStage, topic: str, bodies: list[str]) -> None:
    """Send each body in a millisecond of its own, and wait until the queue has all of them."""
    producer = await stage.producer()
    for number, body in enumerate(bodies):
        await stage.send(producer, to_send(topic, [body], tags="AB"[number % 2]))
        await _clock_moves(stage)
    await stage.stored(topic, len(bodies))


@scenario(
    "pull",
    "pull: bounds, offsets by time, filters, statuses, commits",
    "producer.start",
    "send.sync",
    "pull.start",
    "pull.queues",
    "pull.offsets",
    "pull.pull",
    "pull.commit",
    "pull.committed",
)
async def pull(stage: InteropStage) -> Outcome:
    topic = await stage.topic(queues=1)
    bodies = texts(10)
    await _send_apart(stage, topic, bodies)
    reader = await stage.reader(topic)
    (queue,) = await stage.queues(reader, topic)

    async def ask(op: str, **fields: Any) -> dict[str, Any]:
        return await stage.driver.do(op, consumer=reader, queue=queue, **fields)

    async def take(offset: int, expression: str = "*", most: int = 32) -> dict[str, Any]:
        answer = await ask("pull.pull", offset=offset, expression=expression, max=most)
        answer["messages"] = [message["body"] for message in answer["messages"]]
        return answer

    all_ = (await ask("pull.pull", offset=0, expression="*", max=32))["messages"]
    assert [message["body"] for message in all_] == bodies
    bounds = await ask("pull.offsets")
    assert (bounds["min"], bounds["max"]) == (0, len(bodies))
    stored = [message["store_ms"] for message in all_]
    times = {"first": 0, "exact": stored[4], "between": stored[4] + 1, "later": stored[-1] + _HOUR_MS}
    searched = {name: (await ask("pull.offsets", timestamp=at))["searched"] for name, at in times.items()}
    assert searched["exact"] == 4
    before = (await ask("pull.committed"))["offset"]
    await ask("pull.commit", offset=7)
    assert (await ask("pull.committed"))["offset"] == 7
    return {
        "searched": searched,
        "some": await take(2, most=3),
        "filtered": await take(0, "B"),
        "none match": await take(0, "C"),
        "at the end": await take(len(bodies)),
        "beyond": await take(len(bodies) + 5),
        "below": await _below(take(-1)),
        "committed before": before,
        "message": looks(all_[0]),
    }


async def _below(attempt: Any) -> dict[str, Any]:
    # The Java client itself refuses to pull below offset 0.
    try:
        answer: dict[str, Any] = await attempt
    except DriverError as error:
        return {"type": error.kind, "code": error.code}
    return answer


@scenario(
    "pull-from",
    "pull from an offset: filters and statuses",
    "producer.start",
    "send.sync",
    "pull.start",
    "pull.queues",
    "pull.pull",
)
async def pull_from(stage: InteropStage) -> Outcome:
    """Pulls of a library that can pull by offset but cannot query a queue's offsets."""
    topic = await stage.topic(queues=1)
    bodies = texts(6)
    await _send_apart(stage, topic, bodies)
    reader = await stage.reader(topic)
    (queue,) = await stage.queues(reader, topic)
    outcome = {}
    for offset, expression in ((0, "*"), (2, "*"), (0, "B"), (0, "C"), (len(bodies) + 5, "*")):
        answer = await stage.driver.do(
            "pull.pull", consumer=reader, queue=queue, offset=offset, expression=expression, max=3
        )
        answer["messages"] = [message["body"] for message in answer["messages"]]
        outcome[f"{offset} {expression}"] = answer
    assert outcome["2 *"]["messages"] == bodies[2:5]
    assert outcome["0 B"]["messages"] == bodies[1::2]
    return outcome


@scenario("pull-unknown-topic", "a topic that does not exist", "pull.start", "pull.queues")
async def pull_unknown_topic(stage: InteropStage) -> Outcome:
    topic = stage.name("no-such-topic")
    reader = await stage.reader(topic)
    return await failure(stage.driver.do("pull.queues", consumer=reader, topic=topic))
