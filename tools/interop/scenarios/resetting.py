"""Resets of groups whose members consume."""

from __future__ import annotations

import asyncio
from typing import Final

from rewindmq.client import ResponseError
from rewindmq.protocol.code import ResponseCode
from tools.interop.scenarios.scenario import Outcome, Stage, by_body, scenario, texts, to_send, within

_BODIES: Final = texts(16)
_END: Final = -1
_BEGINNING: Final = 0
# A classic reset takes the consumer 10 s and a rebalance; before it can be asked for, offsets are committed.
_RESET_SECONDS: Final = 120.0
_ASK_SECONDS: Final = 0.5


async def _reset(stage: Stage, topic: str, group: str, timestamp: int) -> dict[int, int]:
    """Reset, once the group has committed an offset of each queue; the offsets by queue."""
    refusal = "nobody answered"
    async with within(_RESET_SECONDS, lambda: f"no reset, since {refusal}"):
        while True:
            try:
                result = await stage.admin.reset_offset_by_timestamp(topic, group, timestamp)
            except ResponseError as error:
                refusal = str(error)
                # The classic reset refuses as long as one queue has none.
                await asyncio.sleep(_ASK_SECONDS)
            else:
                return {queue.queue_id: offset for queue, offset in result.offset_table.items()}


async def _rewound(stage: Stage, op: str) -> Outcome:
    topic = await stage.topic()
    producer = await stage.producer()
    consumer = await stage.consumer(topic, op=op)
    await stage.send(producer, to_send(topic, _BODIES))
    assert sorted(await stage.driver.bodies(consumer, len(_BODIES))) == sorted(_BODIES)
    await stage.committed(topic, consumer, len(_BODIES))
    targets = await _reset(stage, topic, consumer, _BEGINNING)
    delivered = await stage.driver.messages(consumer, 2 * len(_BODIES), _RESET_SECONDS)
    deliveries = by_body(delivered)
    assert {body: len(times) for body, times in deliveries.items()} == dict.fromkeys(_BODIES, 2)
    assert all(len({(m["queue"], m["offset"]) for m in times}) == 1 for times in deliveries.values())
    await stage.send(producer, to_send(topic, ["after"]))
    await stage.driver.messages(consumer, 2 * len(_BODIES) + 1, _RESET_SECONDS)
    await stage.committed(topic, consumer, len(_BODIES) + 1)
    return {"targets": targets}


@scenario(
    "reset-rewind",
    "reset to the beginning while consuming",
    "producer.start",
    "send.sync",
    "consume.concurrent",
    "reset",
)
async def reset_rewind(stage: Stage) -> Outcome:
    """Everything is delivered again, and what is sent after."""
    return await _rewound(stage, "consume.concurrent")


@scenario(
    "reset-rewind-orderly",
    "the same with an orderly consumer",
    "producer.start",
    "send.sync",
    "consume.orderly",
    "reset",
)
async def reset_rewind_orderly(stage: Stage) -> Outcome:
    return await _rewound(stage, "consume.orderly")


@scenario(
    "reset-skip",
    "skip what has accumulated while consuming",
    "producer.start",
    "send.sync",
    "consume.orderly",
    "consume.release",
    "hold",
    "reset",
)
async def reset_skip(stage: Stage) -> Outcome:
    """A listener hangs in the first message: those behind it are skipped, what is sent later is delivered."""
    topic = await stage.topic(queues=1)
    producer = await stage.producer()
    await stage.send(producer, to_send(topic, _BODIES))
    consumer = await stage.consumer(topic, op="consume.orderly", hold=True)
    assert await stage.driver.bodies(consumer, 1) == _BODIES[:1]
    targets = await _reset(stage, topic, consumer, _END)
    assert targets == {0: len(_BODIES)}
    await stage.committed(topic, consumer, len(_BODIES))
    # Wakes its pull, whose answer is where 5.x tells of the reset.
    await stage.send(producer, to_send(topic, ["after"]))
    await _forgotten(stage, consumer)
    await stage.driver.do("consume.release", consumer=consumer)
    assert await stage.driver.bodies(consumer, 2, _RESET_SECONDS) == [_BODIES[0], "after"]
    return {"targets": targets}


async def _left(stage: Stage, group: str) -> None:
    """Until the broker knows no member of the group: a member would be told of the reset, and only that."""
    async with within(_RESET_SECONDS, f"{group} still has a member"):
        while True:
            try:
                await stage.admin.examine_consumer_connection_info(group)
            except ResponseError as error:
                if error.code != ResponseCode.CONSUMER_NOT_ONLINE:
                    raise
                return
            await asyncio.sleep(_ASK_SECONDS)


async def _forgotten(stage: Stage, group: str) -> None:
    """Until the group's one member has thrown away what it had pulled before the reset."""
    (member,) = (await stage.admin.examine_consumer_connection_info(group)).connection_set
    async with within(_RESET_SECONDS, f"{member.client_id} forgot nothing"):
        while True:
            info = await stage.admin.get_consumer_running_info(group, member.client_id)
            queues = [
                table for queue, table in info.mq_table.items() if not queue.topic.startswith("%RETRY%")
            ]
            if all(queue.droped or queue.cached_msg_count <= 1 for queue in queues):
                return
            await asyncio.sleep(_ASK_SECONDS)


@scenario(
    "reset-stopped",
    "reset to the beginning while nobody consumes",
    "producer.start",
    "send.sync",
    "consume.concurrent",
    "consume.stop",
)
async def reset_stopped(stage: Stage) -> Outcome:
    """The offsets are written for the group, whose next member begins there."""
    topic = await stage.topic()
    producer = await stage.producer()
    group = stage.name("group")
    consumer = await stage.consumer(topic, group=group)
    await stage.send(producer, to_send(topic, _BODIES))
    assert sorted(await stage.driver.bodies(consumer, len(_BODIES))) == sorted(_BODIES)
    await stage.committed(topic, group, len(_BODIES))
    await stage.driver.do("consume.stop", consumer=consumer)
    await _left(stage, group)
    result = await stage.admin.reset_or_write(topic, group, _BEGINNING)
    assert result.is_success, result.failure
    again = await stage.consumer(topic, "again", group=group)
    delivered = await stage.driver.bodies(again, len(_BODIES), _RESET_SECONDS)
    assert sorted(delivered) == sorted(_BODIES)
    return {"written by hand": result.written is not None}
