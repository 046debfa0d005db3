"""The producer's and the consumers' processes: ``python -m rewindmq.cluster.demo.worker ROLE ...``.

A worker reads one command per line from standard input and writes one JSON value per line to standard output.
It stops when standard input ends: the demo closes it, or the demo's process has ended.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from rewindmq.client.produce.producer import Producer
from rewindmq.client.push.listener import ConsumeConcurrentlyStatus
from rewindmq.client.push.push_consumer import PushConsumer
from rewindmq.cluster.demo.names import CONSUMER_GROUP, ORDERS, PRODUCER_GROUP, TAG, TOPIC
from rewindmq.protocol.body.heartbeat import ConsumeFromWhere
from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.message import Message, MessageExt
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.points import Point
from rewindmq.protocol.remoting.process.runner import loop_factory
from rewindmq.protocol.remoting.runtime import Runtime, system_runtime

PRODUCER: Final = "producer"
CONSUMER: Final = "consumer"
_IN_FLIGHT: Final = 256
_REPORTED_POINTS: Final = frozenset(
    {
        Point.RESET_NOTIFICATION_RECEIVED,
        Point.SUSPENDED,
        Point.QUEUE_DROPPED,
        Point.WAIT_OVER,
        Point.OFFSET_APPLIED,
        Point.COMMIT_SENT,
        Point.QUEUE_REMOVED,
        Point.RESUMED,
        Point.REBALANCED,
        Point.QUEUE_ADDED,
    }
)


def _report(value: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(value, separators=(",", ":")) + "\n")
    sys.stdout.flush()


async def _produce(runtime: Runtime, arguments: argparse.Namespace, commands: asyncio.StreamReader) -> None:
    producer = Producer(
        PRODUCER_GROUP,
        arguments.namesrv,
        runtime=runtime,
        profile=arguments.profile,
        serialize_type=SerializeType.MSGPACK,
    )
    permits = asyncio.Semaphore(_IN_FLIGHT)

    async def send(index: int, queue: MessageQueue | None) -> None:
        async with permits:
            message = Message(TOPIC, b"Hello RocketMQ %d" % index, TAG, f"order-{index % ORDERS}")
            result = await producer.send(message, queue=queue)
        place = result.message_queue
        _report(
            {
                "sent": index,
                "broker": place.broker_name,
                "queue": place.queue_id,
                "offset": result.queue_offset,
            }
        )

    async def carry_out(line: str) -> None:
        """Carry out ``send FIRST COUNT`` (to the queues in turn) or ``each FIRST`` (one to each queue).

        The number in the first message's body is FIRST.
        """
        kind, first, *count = line.split()
        queues: Sequence[MessageQueue | None]
        if kind == "each":
            queues = await producer.fetch_publish_message_queues(TOPIC)
        else:
            queues = [None] * int(count[0])
        async with asyncio.TaskGroup() as sends:
            for index, queue in enumerate(queues, int(first)):
                sends.create_task(send(index, queue))

    async with producer:
        await _serve(commands, carry_out)


async def _consume(runtime: Runtime, arguments: argparse.Namespace, commands: asyncio.StreamReader) -> None:
    consumer = PushConsumer(
        CONSUMER_GROUP,
        arguments.namesrv,
        runtime=runtime,
        profile=arguments.profile,
        serialize_type=SerializeType.MSGPACK,
        consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    )
    consumer.subscribe(TOPIC, TAG)

    async def listener(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
        now = runtime.clock.now_ms()
        for message in messages:
            _report(
                {
                    "delivered": int(message.body.rpartition(b" ")[2]),
                    "broker": message.broker_name,
                    "queue": message.queue_id,
                    "offset": message.queue_offset,
                    "at": now,
                }
            )
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    consumer.register_message_listener(listener)

    async def carry_out(line: str) -> None:
        """Carry out ``suspend`` or ``resume``."""
        if line == "suspend":
            consumer.suspend()
        else:
            await consumer.resume()
        _report({"done": line})

    # Both consumers join the group before either takes a queue over, so that no rebalance moves a queue
    # later.
    consumer.suspend()
    async with consumer:
        await _serve(commands, carry_out)


async def _serve(commands: asyncio.StreamReader, carry_out: Callable[[str], Awaitable[None]]) -> None:
    _report({"ready": True})
    while line := await commands.readline():
        await carry_out(line.decode().strip())


def _probe(clock_ms: Callable[[], int]) -> Callable[[Point, dict[str, Any]], None]:
    def probe(point: Point, details: dict[str, Any]) -> None:
        if point in _REPORTED_POINTS and details.get("topic", TOPIC) == TOPIC:
            _report(
                {
                    "point": point,
                    "at": clock_ms(),
                    "broker": details.get("broker_name"),
                    "queue": details.get("queue_id"),
                    "offset": details.get("offset"),
                    "address": details.get("broker"),
                }
            )

    return probe


async def _run(arguments: argparse.Namespace) -> None:
    clock = system_runtime().clock
    runtime = system_runtime(time_scale=arguments.time_scale, probe=_probe(clock.now_ms))
    loop = asyncio.get_running_loop()
    commands = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    role = _produce if arguments.role == PRODUCER else _consume
    try:
        await role(runtime, arguments, commands)
    finally:
        runtime.workers.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=(PRODUCER, CONSUMER))
    parser.add_argument("--namesrv", required=True)
    parser.add_argument("--time-scale", type=float, required=True)
    parser.add_argument("--profile", required=True)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_run(parser.parse_args()))


if __name__ == "__main__":
    main()
