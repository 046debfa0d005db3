"""Drives RewindMQ's own producers and consumers; ../README.md says how it is spoken to."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from rewindmq.client import (
    ConsumeConcurrentlyStatus,
    ConsumeFromWhere,
    Message,
    MessageExt,
    Producer,
    PushConsumer,
    SendResult,
)
from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.errors import ResponseError, RewindMQError

Fields = dict[str, Any]
_FROM: Final = {
    "first": ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
    "last": ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET,
}


def say(line: Fields) -> None:
    """One line to the suite."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


class Drive:
    """The producers and consumers of one suite, by the names it gave them."""

    def __init__(self, wire: SerializeType | None) -> None:
        self._wire = wire
        self._producers: dict[str, Producer] = {}
        self._consumers: dict[str, PushConsumer] = {}
        self.ops: Final[dict[str, Callable[[Fields], Awaitable[Fields]]]] = {
            "producer.start": self.start_producer,
            "send.sync": self.send,
            "consume.concurrent": self.consume,
        }

    async def start_producer(self, fields: Fields) -> Fields:
        producer = Producer(fields["group"], fields["namesrv"], wire=self._wire)
        await producer.start()
        self._producers[fields["name"]] = producer
        return {}

    async def send(self, fields: Fields) -> Fields:
        producer = self._producers[fields["producer"]]
        results = [await producer.send(_message(message)) for message in fields["messages"]]
        return {"results": [_result(result) for result in results]}

    async def consume(self, fields: Fields) -> Fields:
        name = fields["name"]
        consumer = PushConsumer(
            fields["group"],
            fields["namesrv"],
            wire=self._wire,
            consume_from_where=_FROM[fields.get("from", "first")],
        )

        async def listen(messages: Sequence[MessageExt]) -> ConsumeConcurrentlyStatus:
            say({"event": "delivered", "consumer": name, "messages": [_delivered(m) for m in messages]})
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

        consumer.subscribe(fields["topic"], fields["expression"])
        consumer.register_message_listener(listen)
        await consumer.start()
        self._consumers[name] = consumer
        return {}

    async def shutdown(self) -> None:
        for member in (*self._consumers.values(), *self._producers.values()):
            await member.shutdown()


def _message(fields: Fields) -> Message:
    return Message(fields["topic"], fields["body"].encode(), tags=fields.get("tags"), keys=fields.get("keys"))


def _result(result: SendResult) -> Fields:
    return {
        "status": result.status.name,
        "id": result.msg_id,
        "offset_id": result.offset_msg_id,
        "broker": result.message_queue.broker_name,
        "queue": result.message_queue.queue_id,
        "offset": result.queue_offset,
    }


def _delivered(message: MessageExt) -> Fields:
    return {
        "topic": message.topic,
        "broker": message.broker_name,
        "queue": message.queue_id,
        "offset": message.queue_offset,
        "body": message.body.decode(),
        "tags": message.tags,
        "keys": message.keys,
        "properties": dict(message.properties),
        "reconsume_times": message.reconsume_times,
        "sys_flag": message.sys_flag,
    }


def _failure(error: Exception) -> Fields:
    code = error.code if isinstance(error, ResponseError) else None
    return {"type": type(error).__name__, "code": code, "text": str(error)}


async def _answer(drive: Drive, request: Fields) -> None:
    try:
        say({"id": request["id"], "ok": await drive.ops[request["op"]](request)})
    except (RewindMQError, OSError, KeyError, TypeError, ValueError) as error:
        say({"id": request["id"], "error": _failure(error)})


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wire", default="auto", choices=("auto", "JSON", "ROCKETMQ", "MSGPACK"))
    wire = parser.parse_args().wire
    drive = Drive(None if wire == "auto" else SerializeType[wire])
    say({"ready": {"client": "rewindmq", "version": "0.1.0", "ops": sorted(drive.ops)}})
    loop = asyncio.get_running_loop()
    requests = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(requests), sys.stdin)
    async with asyncio.TaskGroup() as tasks:
        async for line in requests:
            tasks.create_task(_answer(drive, json.loads(line)))
    await drive.shutdown()


if __name__ == "__main__":
    asyncio.run(main())
