"""Resets of groups while their consumers run."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, Self

from rewindmq import ResponseError
from rewindmq.protocol.code import ResponseCode
from tools.interop.scenarios.scenario import (
    RUST,
    InteropStage,
    OneOf,
    Outcome,
    by_body,
    scenario,
    texts,
    to_send,
)
from tools.interop.versions import SERVER_5

_BODIES: Final = texts(16)
_END: Final = -1
_BEGINNING: Final = 0
_GO: Final = "github.com/apache/rocketmq-client-go/v2"
# A client waits 10 s before it applies a reset.
_WAIT_SECONDS: Final = 10.0
_STORED_BY_BROKER: Final = ("v53", SERVER_5)
# A consumer waits so long for the locks of its queues.
_LOCK_SECONDS: Final = 1.0
_TOO_LATE: Final = "a suspended pull answered after the client's wait puts the old offset back (race R1)"
_CLOSES: Final = (
    "Rust closes its connection when a lock or heartbeat takes longer than its limit of 1 or 3 s"
    " (retire_after_timeout): a pull that is suspended for the old connection takes the reset"
)
_LEAVES_FIRST: Final = (
    "Go leaves its group before its oneway commit, which may reach the broker after the reset"
)


async def _reset(stage: InteropStage, topic: str, group: str, timestamp: int) -> dict[int, int]:
    """Reset once the group has committed an offset of each queue; return the target offsets by queue."""
    targets: dict[int, int] = {}
    refusal = "the broker did not answer"

    async def is_reset() -> bool:
        nonlocal refusal
        try:
            result = await stage.admin.resets.reset(topic, group, timestamp, write=False)
        except ResponseError as error:
            # A classic reset is refused as long as one queue has no offset.
            refusal = str(error)
            return False
        targets.update({queue.queue_id: offset for queue, offset in result.offset_table.items()})
        return True

    await stage.reached(is_reset, lambda: f"the reset was refused: {refusal}")
    return targets


async def _rewound(stage: InteropStage, op: str) -> Outcome:
    topic = await stage.topic()
    producer = await stage.producer()
    consumer = await stage.consumer(topic, op=op)
    await stage.send(producer, to_send(topic, _BODIES))
    assert sorted(await stage.bodies(consumer, len(_BODIES))) == sorted(_BODIES)
    await stage.committed(topic, consumer, len(_BODIES))
    consumer_id = await _only_consumer(stage, consumer)
    connections = await stage.connections(consumer)
    before = len(stage.driver.delivered[consumer])
    targets = await _reset(stage, topic, consumer, _BEGINNING)
    async with _Silence.of(stage, topic, consumer, consumer_id) as silence:
        await _reset_applied(stage, topic, consumer, consumer_id, before, targets)
        # New messages end the pulls that the broker suspended. If the broker kept them suspended, their
        # answers would put back the old offsets after the wait (race R1). A client that then waits for the
        # locks of its queues would continue at the old offsets.
        after = await _sent_to_each(stage, producer, topic, {*targets})
        await stage.committed(topic, consumer, len(_BODIES) + len(after))
        silence.connections.add(await stage.connections(consumer))
    # The driver answers after every delivery.
    await stage.stop(consumer)
    everything = stage.driver.delivered[consumer]
    assert all(len({(m["queue"], m["offset"]) for m in same}) == 1 for same in by_body(everything).values())
    times = Counter(message["body"] for message in everything[before:])
    is_rewound = times == Counter(_BODIES + after)
    # In both cases RocketMQ's own cluster loses the reset of a queue, too: on a machine so busy, and if the
    # broker saw the client's connection close.
    is_rust = stage.driver.client == RUST
    is_excused = silence.longest > _LOCK_SECONDS or (is_rust and silence.connections != {connections})
    assert is_rewound or is_excused, f"{silence}; {targets}; from the reset on: {times}"
    assert times.keys() <= {*_BODIES, *after}
    why = _CLOSES if is_rust else _TOO_LATE
    return {"targets": targets, "rewound": OneOf(why, (True, False), is_rewound)}


class _Silence:
    """Asks for a group's state again and again, and keeps how long the slowest answer took.

    It asks the consumer, through the broker. During a reset by 5.x, Java's clients do not answer. There the
    broker stores the reset, so it is asked for the group's offsets.

    Attributes:
        longest: seconds.
        connections: what ``InteropStage.connections`` returned, each once. A client that connects again is
            missing until its next heartbeat.
    """

    def __init__(self) -> None:
        self.longest = 0.0
        self.connections: set[frozenset[str]] = set()

    @classmethod
    @asynccontextmanager
    async def of(cls, stage: InteropStage, topic: str, group: str, consumer_id: str) -> AsyncIterator[Self]:
        silence, admin = cls(), stage.admin

        def question() -> Awaitable[object]:
            if stage.server.release in _STORED_BY_BROKER:
                return admin.groups.examine_consume_stats(group, topic)
            return admin.groups.get_consumer_running_info(group, consumer_id)

        asking = asyncio.create_task(silence._ask(stage, group, question))
        try:
            yield silence
        finally:
            asking.cancel()
            await asyncio.wait({asking})
        if not asking.cancelled():
            asking.result()

    async def _ask(self, stage: InteropStage, group: str, question: Callable[[], Awaitable[object]]) -> None:
        now = asyncio.get_running_loop().time
        while True:
            asked_at = now()
            try:
                await stage.asked(question())
            finally:
                # Also of the last question, whose answer nobody waits for.
                self.longest = max(self.longest, now() - asked_at)
            self.connections.add(await stage.connections(group))
            await asyncio.sleep(_LOCK_SECONDS / 2)

    def __str__(self) -> str:
        return f"the slowest answer took {self.longest:.1f} s; connections: {self.connections}"


async def _sent_to_each(stage: InteropStage, producer: str, topic: str, queues: set[int]) -> list[str]:
    """Send messages until each queue has one of them; return their bodies.

    Most libraries need one message a queue. rocketmq-client-rust counts the turns of each thread apart.
    """
    bodies: list[str] = []
    while queues:
        bodies += texts(1, f"after {len(bodies)}:")
        (result,) = await stage.send(producer, to_send(topic, bodies[-1:]))
        queues = queues - {result["queue"]}
    return bodies


async def _reset_applied(
    stage: InteropStage, topic: str, group: str, consumer_id: str, before: int, targets: dict[int, int]
) -> None:
    """Wait until the group's only consumer has dropped its queues, or the broker has stored the targets.

    A classic reset begins with the first and ends with the second; 5.x stores the targets at once. On a busy
    machine both may pass unseen; then a message that is delivered again, or the time, shows that the
    consumer's wait is over.

    Args:
        before: how many messages the consumer had received before the reset.
    """
    now = asyncio.get_running_loop().time
    over_at = now() + 6 * _WAIT_SECONDS

    async def is_applied() -> bool:
        if len(stage.driver.delivered[group]) > before or now() > over_at:
            return True
        info = await stage.asked(stage.admin.groups.get_consumer_running_info(group, consumer_id))
        states = info.mq_table.items() if info is not None else ()
        dropped = {queue.queue_id for queue, state in states if queue.topic == topic and state.droped}
        stats = await stage.asked(stage.admin.groups.examine_consume_stats(group, topic))
        queues = stats.offset_table.items() if stats is not None else ()
        stored = {queue.queue_id: state.consumer_offset for queue, state in queues}
        return dropped == {*targets} or stored == targets

    await stage.reached(is_applied, lambda: f"{consumer_id} has not applied the reset")


@scenario(
    "reset-rewind",
    "reset to the beginning while consuming",
    "producer.start",
    "send.sync",
    "consume.concurrent",
    "reset",
)
async def reset_rewind(stage: InteropStage) -> Outcome:
    """All messages are delivered again, then later ones, unless the machine is too busy (race R1)."""
    return await _rewound(stage, "consume.concurrent")


@scenario(
    "reset-rewind-orderly",
    "reset to the beginning while consuming, orderly",
    "producer.start",
    "send.sync",
    "consume.orderly",
    "reset",
)
async def reset_rewind_orderly(stage: InteropStage) -> Outcome:
    return await _rewound(stage, "consume.orderly")


@scenario(
    "reset-skip",
    "skip accumulated messages while consuming",
    "producer.start",
    "send.sync",
    "consume.orderly",
    "consume.release",
    "hold",
    "reset",
)
async def reset_skip(stage: InteropStage) -> Outcome:
    """The reset skips the stored messages while a listener blocks on the first; later ones are delivered."""
    topic = await stage.topic(queues=1)
    producer = await stage.producer()
    await stage.send(producer, to_send(topic, _BODIES))
    # A RocketMQ broker resets to the end of the queue, which it fills after its log.
    await stage.stored(topic, len(_BODIES))
    consumer = await stage.consumer(topic, op="consume.orderly", hold=True)
    assert await stage.bodies(consumer, 1) == _BODIES[:1]
    targets = await _reset(stage, topic, consumer, _END)
    assert targets == {0: len(_BODIES)}
    await stage.committed(topic, consumer, len(_BODIES))
    # The message ends the consumer's suspended pull; 5.x tells the consumer of the reset in the answer.
    await stage.send(producer, to_send(topic, ["after"]))
    await _discarded(stage, consumer)
    await stage.driver.do("consume.release", consumer=consumer)
    assert await stage.bodies(consumer, 2) == [_BODIES[0], "after"]
    return {"targets": targets}


async def _left(stage: InteropStage, group: str) -> None:
    """Wait until the broker knows no consumer of the group; otherwise it would send the reset to that one."""

    async def has_left() -> bool:
        try:
            await stage.admin.groups.examine_consumer_connection_info(group)
        except ResponseError as error:
            return error.code == ResponseCode.CONSUMER_NOT_ONLINE
        return False

    await stage.reached(has_left, lambda: f"{group} still has a consumer")


async def _only_consumer(stage: InteropStage, group: str) -> str:
    """Return the id of the group's only consumer, once the broker knows it."""
    consumers: list[str] = []

    async def is_known() -> bool:
        consumers[:] = await stage.consumer_ids(group)
        return len(consumers) == 1

    await stage.reached(is_known, lambda: f"{group} has the consumers {consumers}")
    return consumers[0]


async def _discarded(stage: InteropStage, group: str) -> None:
    """Wait until the group's only consumer has discarded what it had pulled before the reset."""
    consumer_id = await _only_consumer(stage, group)

    async def has_discarded() -> bool:
        info = await stage.asked(stage.admin.groups.get_consumer_running_info(group, consumer_id))
        return info is not None and all(
            state.droped or state.cached_msg_count <= 1
            for queue, state in info.mq_table.items()
            if not queue.topic.startswith("%RETRY%")
        )

    await stage.reached(has_discarded, lambda: f"{consumer_id} still has messages pulled before the reset")


@scenario(
    "reset-stopped",
    "reset to the beginning while no consumer runs",
    "producer.start",
    "send.sync",
    "consume.concurrent",
    "consume.stop",
)
async def reset_stopped(stage: InteropStage) -> Outcome:
    """The reset stores the offsets for the group, and its next consumer begins there."""
    topic = await stage.topic()
    producer = await stage.producer()
    group = stage.name("group")
    consumer = await stage.consumer(topic, group=group)
    await stage.send(producer, to_send(topic, _BODIES))
    assert sorted(await stage.bodies(consumer, len(_BODIES))) == sorted(_BODIES)
    await stage.committed(topic, group, len(_BODIES))
    await stage.stop(consumer)
    await _left(stage, group)
    result = await stage.admin.resets.reset(topic, group, _BEGINNING)
    again = await stage.consumer(topic, "again", group=group)
    # The new consumer commits; with Go, the commit of the consumer that has left may come first.
    await stage.committed(topic, group, len(_BODIES))
    # The driver answers after every delivery.
    await stage.stop(again)
    delivered = sorted(message["body"] for message in stage.driver.delivered[again])
    outcome: Outcome = {"written by hand": result.written is not None}
    if stage.driver.client == _GO:
        return outcome | {"again": OneOf(_LEAVES_FIRST, (True, False), delivered == sorted(_BODIES))}
    assert delivered == sorted(_BODIES)
    return outcome
