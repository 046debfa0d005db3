"""Push consumers: concurrent, orderly, broadcasting, sharing their queues."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from tools.interop.scenarios.scenario import (
    Message,
    Outcome,
    Stage,
    looks,
    scenario,
    texts,
    to_send,
    until,
    within,
)

_QUEUES: Final = 4
_EACH: Final = 6
_SHARE_SECONDS: Final = 90.0


def _by_key(topic: str, rounds: Iterable[int]) -> list[Message]:
    """One message for each queue and round; the key is the queue's number."""
    return [
        message
        for round_ in rounds
        for key in range(_QUEUES)
        for message in to_send(topic, [f"{key}:{round_}"], sharding_key=str(key))
    ]


def _rounds(messages: Iterable[Message]) -> dict[str, list[int]]:
    """By key, the rounds in the order in which they were delivered."""
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
async def push_concurrent(stage: Stage) -> Outcome:
    """What was consumed stays consumed: a second member begins where the first has stopped."""
    topic = await stage.topic()
    producer = await stage.producer()
    first, second = texts(64), texts(16, "later")
    await stage.send(producer, to_send(topic, first))
    group = stage.name("group")
    consumer = await stage.consumer(topic, group=group)
    assert sorted(await stage.driver.bodies(consumer, len(first))) == sorted(first)
    # The suite is told of a message before its listener returns.
    await stage.committed(topic, group, len(first))
    await stage.driver.do("consume.stop", consumer=consumer)
    await stage.send(producer, to_send(topic, second))
    again = await stage.consumer(topic, "again", group=group)
    assert sorted(await stage.driver.bodies(again, len(second))) == sorted(second)
    return {"message": looks(stage.driver.delivered[again][0])}


@scenario("push-orderly", "push, orderly", "producer.start", "send.ordered", "consume.orderly")
async def push_orderly(stage: Stage) -> Outcome:
    topic = await stage.topic(queues=_QUEUES)
    producer = await stage.producer()
    results = await stage.send(producer, _by_key(topic, range(_EACH)), "send.ordered")
    queues = [result["queue"] for result in results]
    assert queues == queues[:_QUEUES] * _EACH, "the same key, and another queue"
    assert len(set(queues)) == _QUEUES
    consumer = await stage.consumer(topic, op="consume.orderly")
    delivered = await stage.driver.messages(consumer, len(results))
    assert _rounds(delivered) == {str(key): list(range(_EACH)) for key in range(_QUEUES)}
    return {"queues": queues[:_QUEUES], "message": looks(delivered[0])}


@scenario(
    "push-orderly-moves",
    "orderly, when a member goes",
    "producer.start",
    "send.ordered",
    "consume.orderly",
    "consume.stop",
)
async def push_orderly_moves(stage: Stage) -> Outcome:
    """The member that stays takes the queues over, each where the other stopped."""
    topic = await stage.topic(queues=_QUEUES)
    producer = await stage.producer()
    group = stage.name("group")
    stays = await stage.consumer(topic, "stays", op="consume.orderly", group=group)
    goes = await stage.consumer(topic, "goes", op="consume.orderly", group=group)
    rounds = await _until_shared(stage, topic, producer, (stays, goes))
    await stage.driver.do("consume.stop", consumer=goes)
    await stage.send(producer, _by_key(topic, range(rounds, rounds + _EACH)), "send.ordered")
    total = _QUEUES * (rounds + _EACH)
    await _until_delivered(stage, (stays, goes), total, _SHARE_SECONDS)
    together = [*stage.driver.delivered[goes], *stage.driver.delivered[stays]]
    assert {m["body"] for m in together} == {m["body"] for m in _by_key(topic, range(rounds + _EACH))}
    for name in (goes, stays):
        for order in _rounds(stage.driver.delivered[name]).values():
            assert order == sorted(order), order
    last = {m["body"] for m in _by_key(topic, range(rounds, rounds + _EACH))}
    assert last <= {m["body"] for m in stage.driver.delivered[stays]}
    return {}


@scenario(
    "push-shared", "two members share the queues", "producer.start", "send.ordered", "consume.concurrent"
)
async def push_shared(stage: Stage) -> Outcome:
    topic = await stage.topic(queues=_QUEUES)
    producer = await stage.producer()
    group = stage.name("group")
    members = [await stage.consumer(topic, name, group=group) for name in ("one", "two")]
    rounds = await _until_shared(stage, topic, producer, members)
    seen = {name: len(stage.driver.delivered[name]) for name in members}
    await stage.send(producer, _by_key(topic, range(rounds, rounds + _EACH)), "send.ordered")
    await _until_delivered(stage, members, _QUEUES * (rounds + _EACH), _SHARE_SECONDS)
    shares = [
        {message["queue"] for message in stage.driver.delivered[name][seen[name] :]} for name in members
    ]
    assert not shares[0] & shares[1], shares
    return {"shares": [len(share) for share in shares]}


@scenario(
    "push-broadcasting",
    "every member gets all",
    "producer.start",
    "send.sync",
    "consume.concurrent",
    "broadcasting",
)
async def push_broadcasting(stage: Stage) -> Outcome:
    topic = await stage.topic()
    producer = await stage.producer()
    bodies = texts(16)
    group = stage.name("group")
    members = [
        await stage.consumer(topic, name, group=group, model="BROADCASTING") for name in ("one", "two")
    ]
    await stage.send(producer, to_send(topic, bodies))
    for name in members:
        assert sorted(await stage.driver.bodies(name, len(bodies))) == sorted(bodies)
    return {"message": looks(stage.driver.delivered[members[0]][0])}


@scenario("push-from", "where a new group begins", "producer.start", "send.sync", "consume.concurrent")
async def push_from(stage: Stage) -> Outcome:
    """From the first message on, and what "from the last on" means on a young queue."""
    topic = await stage.topic(queues=1)
    producer = await stage.producer()
    before = texts(4, "before")
    await stage.send(producer, to_send(topic, before))
    outcome = {start: await _from(stage, topic, producer, start) for start in ("first", "last")}
    assert outcome["first"][: len(before)] == before
    return dict(outcome)


async def _from(stage: Stage, topic: str, producer: str, start: str) -> list[str]:
    """What a new group is given that begins so, up to a message sent after it began."""
    consumer = await stage.consumer(topic, f"from-{start}", **{"from": start, "threads": 1})
    after = f"after {start}"
    await stage.send(producer, to_send(topic, [after]))
    delivered = stage.driver.delivered[consumer]
    await until(
        lambda: bool(delivered) and delivered[-1]["body"] == after,
        _SHARE_SECONDS,
        lambda: f"{after!r} was not the last of {[message['body'] for message in delivered]}",
    )
    return [message["body"] for message in delivered]


async def _until_shared(stage: Stage, topic: str, producer: str, members: Iterable[str]) -> int:
    """Send rounds until one is shared evenly; returns how many it took."""
    rounds = 0
    async with within(_SHARE_SECONDS, lambda: f"none of {rounds} rounds was shared evenly"):
        while True:
            seen = {name: len(stage.driver.delivered[name]) for name in members}
            await stage.send(producer, _by_key(topic, (rounds,)), "send.ordered")
            rounds += 1
            await _until_delivered(stage, members, rounds * _QUEUES, _SHARE_SECONDS)
            bodies = {m["body"] for name in members for m in stage.driver.delivered[name][seen[name] :]}
            if len(bodies) == _QUEUES and {
                len(stage.driver.delivered[name]) - seen[name] for name in members
            } == {_QUEUES // 2}:
                return rounds


async def _until_delivered(stage: Stage, members: Iterable[str], count: int, seconds: float) -> None:
    """Until that many different messages have come; some come twice while queues change hands."""

    def bodies() -> set[str]:
        return {message["body"] for name in members for message in stage.driver.delivered[name]}

    await until(
        lambda: len(bodies()) >= count,
        seconds,
        lambda: f"{len(bodies())} of {count} messages, {sorted(bodies())}",
    )
