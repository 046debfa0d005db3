"""Scenarios of retried messages and of dead letters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from tools.interop.scenarios.scenario import (
    RUST,
    InteropStage,
    Message,
    Outcome,
    by_body,
    looks,
    scenario,
    texts,
    to_send,
)

_TIMES: Final = 3
_BODIES: Final = texts(2)
_ALWAYS: Final = 1000
# The reconsume times with which a message is delivered for the last time.
_MOST: Final = 2


async def _again_and_again(stage: InteropStage, op: str) -> list[Message]:
    """Return the deliveries of one body, which fails ``_TIMES`` times."""
    topic = await stage.topic(queues=1)
    producer = await stage.producer()
    consumer = await stage.consumer(topic, op=op, fail_times=_TIMES)
    await stage.send(producer, to_send(topic, _BODIES, tags="A", keys="k"))
    count = len(_BODIES) * (_TIMES + 1)
    deliveries = by_body(await stage.messages(consumer, count))
    for body in _BODIES:
        assert [m["reconsume_times"] for m in deliveries[body]] == list(range(_TIMES + 1))
        assert {message["topic"] for message in deliveries[body]} == {topic}
        assert len({message["id"] for message in deliveries[body]}) == 1
    return deliveries[_BODIES[0]]


@scenario(
    "retry",
    "a failed message is delivered again",
    "producer.start",
    "send.sync",
    "consume.concurrent",
    "fail_times",
)
async def retry(stage: InteropStage) -> Outcome:
    return {"deliveries": [looks(m) for m in await _again_and_again(stage, "consume.concurrent")]}


@scenario(
    "retry-orderly",
    "orderly: a failed message is retried in place",
    "producer.start",
    "send.sync",
    "consume.orderly",
    "fail_times",
)
async def retry_orderly(stage: InteropStage) -> Outcome:
    deliveries = await _again_and_again(stage, "consume.orderly")
    assert len({(message["queue"], message["offset"]) for message in deliveries}) == 1
    return {"deliveries": [looks(message) for message in deliveries]}


async def _dead(stage: InteropStage, op: str) -> Outcome:
    topic = await stage.topic(queues=1)
    producer = await stage.producer()
    consumer = await stage.consumer(topic, op=op, fail_times=_ALWAYS, max_reconsume_times=_MOST)
    await stage.send(producer, to_send(topic, ["lost"], tags="A", keys="k"))
    await stage.messages(consumer, _MOST + 1)
    letters = f"%DLQ%{consumer}"
    await stage.wait_route(letters)
    reader = await stage.reader(letters)
    # The queue has two letters if the library sent the letter twice.
    found = await stage.read(reader, letters, 1)
    assert {letter["body"] for letter in found} == {"lost"}
    # Go delivers an orderly message once more than other clients, so read all deliveries only now.
    deliveries = _of_one_owner([message["reconsume_times"] for message in stage.driver.delivered[consumer]])
    letter = looks(found[0])
    if stage.driver.client == RUST and op == "consume.orderly":
        deliveries, letter["reconsume_times"] = as_confirmed(
            deliveries, [one["reconsume_times"] for one in found]
        )
    (queues,) = (await stage.admin.topics.examine_topic_route_info(letters)).queue_datas
    return {
        "deliveries": deliveries,
        "letter": letter,
        "queues": (queues.read_queue_nums, queues.write_queue_nums, queues.perm),
    }


def _of_one_owner(reconsume_times: Sequence[int]) -> list[int]:
    """Return the deliveries before the count starts over.

    An orderly consumer that cannot renew its lock in time gives up the queue; the next owner
    begins with the message that is not committed.
    """
    ends = [place for place, (one, next_) in enumerate(pairwise(reconsume_times), 1) if next_ <= one]
    return list(reconsume_times[: min(ends, default=len(reconsume_times))])


def as_confirmed(deliveries: Sequence[int], letters: Sequence[int]) -> tuple[list[int], int]:
    """Return the deliveries and the letter's reconsume times as if its first send had been confirmed.

    rocketmq-client-rust sends an orderly consumer's letter with an inner producer, which waits 3 s for the
    broker; no option changes that. If the broker is later, the consumer raises the message's reconsume times,
    delivers it again and sends another letter, and the broker may store both. So it does at RocketMQ, too.

    Args:
        deliveries: the reconsume times of each delivery.
        letters: the reconsume times of each letter, in any order.

    Raises:
        AssertionError: there is a delivery or a letter that a late confirmation does not explain.
    """
    assert [*deliveries] == [*range(len(deliveries))], deliveries
    sent = {times + 1 for times in deliveries[_MOST:]}
    assert len({*letters}) == len(letters), letters
    assert {*letters} <= sent, (deliveries, letters)
    return [*deliveries[: _MOST + 1]], _MOST + 1


@scenario(
    "dead-letters",
    "a message that fails too often becomes a dead letter",
    "producer.start",
    "send.sync",
    "consume.concurrent",
    "pull.pull",
    "fail_times",
    "max_reconsume_times",
)
async def dead_letters(stage: InteropStage) -> Outcome:
    return await _dead(stage, "consume.concurrent")


@scenario(
    "dead-letters-orderly",
    "orderly: a message that fails too often becomes a dead letter",
    "producer.start",
    "send.sync",
    "consume.orderly",
    "pull.pull",
    "fail_times",
    "max_reconsume_times",
)
async def dead_letters_orderly(stage: InteropStage) -> Outcome:
    return await _dead(stage, "consume.orderly")
