"""Push consumers: concurrent, orderly, broadcasting, sharing their queues."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from tools.interop.scenarios.scenario import (
    InteropStage,
    Message,
    Outcome,
    looks,
    scenario,
    texts,
    to_send,
)

_QUEUES: Final = 4
_EACH: Final = 6


def _by_key(topic: str, rounds: Iterable[int]) -> list[Message]:
    """Return one message for each queue and round; the key is the queue's number."""
    return [
        message
        for round_ in rounds
        for key in range(_QUEUES)
        for message in to_send(topic, [f"{key}:{round_}"], sharding_key=str(key))
    ]


def _rounds(messages: Iterable[Message]) -> dict[str, list[int]]:
    """Return the rounds by key, in the order of delivery."""
    rounds: dict[str, list[int]] = defaultdict(list)
    for message in messages:
        key, _, round_ = message["body"].partition(":")
        rounds[key].append(int(round_))
    return dict(sorted(rounds.items()))


@scenario(
    "push-concurrent",
    "push, concurrently",
    "producer.start",
    "send.sync",
    "consume.concurrent",
    "consume.stop",
)
async def push_concurrent(stage: InteropStage) -> Outcome:
    """Consumed messages stay consumed: a second consumer begins where the first has stopped."""
    topic = await stage.topic()
    producer = await stage.producer()
    first, second = texts(64), texts(16, "later")
    await stage.send(producer, to_send(topic, first))
    group = stage.name("group")
    consumer = await stage.consumer(topic, group=group)
    assert sorted(await stage.bodies(consumer, len(first))) == sorted(first)
    # The driver reports a message before its listener returns.
    await stage.committed(topic, group, len(first))
    await stage.stop(consumer)
    await stage.send(producer, to_send(topic, second))
    again = await stage.consumer(topic, "again", group=group)
    assert sorted(await stage.bodies(again, len(second))) == sorted(second)
    return {"message": looks(stage.driver.delivered[again][0])}


@scenario("push-orderly", "push, orderly", "producer.start", "send.ordered", "consume.orderly")
async def push_orderly(stage: InteropStage) -> Outcome:
    topic = await stage.topic(queues=_QUEUES)
    producer = await stage.producer()
    results = await stage.send(producer, _by_key(topic, range(_EACH)), "send.ordered")
    queues = [result["queue"] for result in results]
    assert queues == queues[:_QUEUES] * _EACH, "messages with the same key went to different queues"
    assert len(set(queues)) == _QUEUES
    consumer = await stage.consumer(topic, op="consume.orderly")
    delivered = await stage.messages(consumer, len(results))
    assert _rounds(delivered) == {str(key): list(range(_EACH)) for key in range(_QUEUES)}
    return {"queues": queues[:_QUEUES], "message": looks(delivered[0])}


@scenario(
    "push-orderly-moves",
    "push, orderly: a consumer leaves",
    "producer.start",
    "send.ordered",
    "consume.orderly",
    "consume.stop",
)
async def push_orderly_moves(stage: InteropStage) -> Outcome:
    """The consumer that stays takes over the queues, each where the other stopped."""
    topic = await stage.topic(queues=_QUEUES)
    producer = await stage.producer()
    group = stage.name("group")
    stays = await stage.consumer(topic, "stays", op="consume.orderly", group=group)
    goes = await stage.consumer(topic, "goes", op="consume.orderly", group=group)
    await _shared(stage, topic, group, 2)
    await stage.send(producer, _by_key(topic, range(_EACH)), "send.ordered")
    await _until_delivered(stage, (stays, goes), _QUEUES * _EACH)
    await stage.stop(goes)
    await stage.send(producer, _by_key(topic, range(_EACH, 2 * _EACH)), "send.ordered")
    await _until_delivered(stage, (stays, goes), _QUEUES * 2 * _EACH)
    together = [*stage.driver.delivered[goes], *stage.driver.delivered[stays]]
    assert {m["body"] for m in together} == {m["body"] for m in _by_key(topic, range(2 * _EACH))}
    for name in (goes, stays):
        for order in _rounds(stage.driver.delivered[name]).values():
            assert order == sorted(order), order
    last = {m["body"] for m in _by_key(topic, range(_EACH, 2 * _EACH))}
    assert last <= {m["body"] for m in stage.driver.delivered[stays]}
    return {}


@scenario(
    "push-shared", "two consumers share the queues", "producer.start", "send.ordered", "consume.concurrent"
)
async def push_shared(stage: InteropStage) -> Outcome:
    topic = await stage.topic(queues=_QUEUES)
    producer = await stage.producer()
    group = stage.name("group")
    consumers = [await stage.consumer(topic, name, group=group) for name in ("one", "two")]
    await _shared(stage, topic, group, len(consumers))
    await stage.send(producer, _by_key(topic, range(_EACH)), "send.ordered")
    await _until_delivered(stage, consumers, _QUEUES * _EACH)
    shares = [{message["queue"] for message in stage.driver.delivered[name]} for name in consumers]
    assert not shares[0] & shares[1], shares
    return {"shares": [len(share) for share in shares]}


@scenario(
    "push-broadcasting",
    "broadcasting: every consumer gets every message",
    "producer.start",
    "send.sync",
    "consume.concurrent",
    "broadcasting",
)
async def push_broadcasting(stage: InteropStage) -> Outcome:
    topic = await stage.topic()
    producer = await stage.producer()
    bodies = texts(16)
    group = stage.name("group")
    consumers = [
        await stage.consumer(topic, name, group=group, model="BROADCASTING") for name in ("one", "two")
    ]
    await stage.send(producer, to_send(topic, bodies))
    for name in consumers:
        assert sorted(await stage.bodies(name, len(bodies))) == sorted(bodies)
    return {"message": looks(stage.driver.delivered[consumers[0]][0])}


@scenario("push-from", "where a new group begins", "producer.start", "send.sync", "consume.concurrent")
async def push_from(stage: InteropStage) -> Outcome:
    """Starting at the first message delivers all; the outcome shows what starting at the last delivers."""
    topic = await stage.topic(queues=1)
    producer = await stage.producer()
    before = texts(4, "before")
    await stage.send(producer, to_send(topic, before))
    outcome = {start: await _from(stage, topic, producer, start) for start in ("first", "last")}
    assert outcome["first"][: len(before)] == before
    return dict(outcome)


async def _from(stage: InteropStage, topic: str, producer: str, start: str) -> list[str]:
    """Return what a new group with this start receives, up to a message sent after the start."""
    consumer = await stage.consumer(topic, f"from-{start}", start=start, threads=1)
    after = f"after {start}"
    await stage.send(producer, to_send(topic, [after]))
    delivered = stage.driver.delivered[consumer]
    await stage.until(
        lambda: bool(delivered) and delivered[-1]["body"] == after,
        lambda: f"{after!r} was not the last of {[message['body'] for message in delivered]}",
    )
    return [message["body"] for message in delivered]


async def _shared(stage: InteropStage, topic: str, group: str, count: int) -> None:
    """Wait until the group's consumers have the same number of queues each, and no queue twice.

    Each consumer allocates by the consumers that it knows. Once the broker knows all of them and no queue is
    consumed twice, no rebalance changes anything.
    """
    shares: list[set[int]] = []

    async def is_even() -> bool:
        shares[:] = [await _queues(stage, topic, group, client) for client in await stage.consumer_ids(group)]
        taken = set().union(*shares)
        return len(taken) == _QUEUES and [len(share) for share in shares] == [_QUEUES // count] * count

    await stage.reached(is_even, lambda: f"the queues of the consumers of {group}: {shares}")


async def _queues(stage: InteropStage, topic: str, group: str, client: str) -> set[int]:
    info = await stage.asked(stage.admin.groups.get_consumer_running_info(group, client))
    table = info.mq_table if info is not None else {}
    return {queue.queue_id for queue, state in table.items() if queue.topic == topic and not state.droped}


async def _until_delivered(stage: InteropStage, consumers: Iterable[str], count: int) -> None:
    """Wait until ``count`` different messages have arrived; some arrive twice while queues change owners."""

    def bodies() -> set[str]:
        return {message["body"] for name in consumers for message in stage.driver.delivered[name]}

    await stage.until(
        lambda: len(bodies()) >= count,
        lambda: f"{len(bodies())} of {count} messages, {sorted(bodies())}",
    )
