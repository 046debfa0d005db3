"""The experiment, phase by phase."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rewindmq.cluster.demo.names import QUEUES, QUEUES_PER_BROKER, TOPIC
from rewindmq.cluster.demo.resets import run_reset, skip_backlog
from rewindmq.cluster.demo.stage import DemoStage
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.points import Point

# The first phase sends in three parts; these are the shares of the first two. In the pauses between the parts
# no queue stores a message, so a timestamp from a pause lies between two messages of every queue.
_PARTS: Final = (0.4, 0.3)
_PAUSE_SECONDS: Final = 0.3
_SECONDS_TO_CONSUME: Final = 30.0


@dataclass(frozen=True, slots=True)
class Parts:
    """Indexes of the messages of the three parts."""

    first: range
    second: range
    third: range


async def run_experiment(stage: DemoStage) -> None:
    """Run all phases in order, and add every figure to the stage's report.

    Raises:
        ClusterError: a process ended, or the cluster did not reach the state that the next phase needs.
        RewindMQError: a request was refused or not answered.
    """
    parts = await _send(stage)
    ends = await stage.ends()
    queues = {queue: await stage.read_queue(queue, end) for queue, end in ends.items()}
    _verify_contents(stage, queues)
    await _consume(stage)
    first_stored = min(messages[0].store_timestamp for messages in queues.values())
    await run_reset(stage, "reset to the start", first_stored - 1, _store_times(queues))
    middle = _start_of(queues, parts.second) - 1
    await run_reset(stage, "reset into the middle", middle, _store_times(queues))
    await skip_backlog(stage)
    await _replay(stage, parts, middle, _start_of(queues, parts.third) - 1)


async def _send(stage: DemoStage) -> Parts:
    total = stage.options.messages
    producer = stage.producer
    sizes = [int(total * share) for share in _PARTS]
    sizes.append(total - sum(sizes))
    ranges: list[range] = []
    with stage.display.step(f"send {total} messages", total) as advance:
        for size in sizes:
            if ranges:
                await stage.pause(_PAUSE_SECONDS)
            ranges.append(producer.send(size))
            end = ranges[-1].stop

            async def is_sent(end: int = end) -> bool:
                advance(len(producer.sent))
                return len(producer.sent) >= end

            await stage.wait_until("the sends to be acknowledged", is_sent)
    stage.figure("send", "acknowledged", total, len(producer.sent))
    places = {(sent.queue, sent.offset) for sent in producer.sent}
    stage.figure("send", "distinct queue positions", total, len(places))
    ends = await stage.ends()
    stage.figure("send", "queues", QUEUES, len(ends))
    stage.figure("send", "messages in the queues", total, sum(ends.values()))
    return Parts(*ranges)


async def _consume(stage: DemoStage) -> None:
    for consumer in stage.consumers:
        consumer.send_command("resume")
    ends = await stage.ends()
    total = sum(ends.values())
    await stage.wait_for(
        "consume from the first offset", total, stage.journal.count_deliveries, _SECONDS_TO_CONSUME
    )
    await stage.settle()
    stage.verify_deliveries("consume", 0, {queue: range(end) for queue, end in ends.items()})
    for consumer in stage.consumers:
        added = stage.journal.events(point=Point.QUEUE_ADDED)
        owned = {event.queue for event in added if event.consumer == consumer.name}
        stage.figure("consume", f"queues of {consumer.name}", QUEUES_PER_BROKER, len(owned))


def _verify_contents(stage: DemoStage, queues: dict[MessageQueue, list[MessageExt]]) -> None:
    """Check bodies, tags and offsets of the messages, which were pulled from the brokers."""
    total = stage.options.messages
    bodies = [message.body for messages in queues.values() for message in messages]
    wanted = {b"Hello RocketMQ %d" % index for index in range(total)}
    stage.figure("send", "distinct bodies 'Hello RocketMQ i'", total, len(wanted & set(bodies)))
    tagged = sum(message.tags == "TagA" for messages in queues.values() for message in messages)
    stage.figure("send", "tagged TagA", total, tagged)
    in_order = sum(
        [message.queue_offset for message in messages] == list(range(len(messages)))
        for messages in queues.values()
    )
    stage.figure("send", "queues numbered without a gap", QUEUES, in_order)


async def _replay(stage: DemoStage, parts: Parts, begin_ms: int, end_ms: int) -> None:
    """Replay the messages stored in ``[begin_ms, end_ms]``; compare them with the producer's second part."""
    wanted = {(sent.queue, sent.offset) for sent in stage.producer.sent if sent.number in parts.second}
    replayed: list[tuple[MessageQueue, int]] = []
    with stage.display.step("replay an interval", len(wanted)) as advance:
        async for message in stage.puller.replay(TOPIC, begin_ms, end_ms):
            replayed.append((message.message_queue, message.queue_offset))
            advance(len(replayed))
    name, found = "replay of an interval", set(replayed)
    stage.figure(name, "messages of the interval", len(wanted), len(wanted & found))
    stage.figure(name, "messages outside of it", 0, len(found - wanted))
    stage.figure(name, "replayed in all", len(wanted), len(replayed))


def _store_times(queues: dict[MessageQueue, list[MessageExt]]) -> dict[MessageQueue, list[int]]:
    return {queue: [message.store_timestamp for message in messages] for queue, messages in queues.items()}


def _start_of(queues: dict[MessageQueue, list[MessageExt]], part: range) -> int:
    """Return the store time of a part's first message."""
    return min(
        message.store_timestamp
        for messages in queues.values()
        for message in messages
        if int(message.body.rpartition(b" ")[2]) in part
    )
