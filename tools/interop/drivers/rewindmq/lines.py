"""The driver's side of the line protocol: lines, messages, results and errors as in ``../README.md``."""

from __future__ import annotations

import json
import sys
from typing import Any

from rewindmq import Message, MessageExt, MessageQueue, RewindMQError, SendResult
from rewindmq.protocol.errors import ReplyTimeoutError, ResponseError
from rewindmq.protocol.message.properties import format_properties
from rewindmq.protocol.remoting.address import pack_host

Fields = dict[str, Any]


def say(line: Fields) -> None:
    """Write one line to the suite."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def failure(error: Exception) -> Fields:
    code = error.code if isinstance(error, ReplyTimeoutError | ResponseError) else None
    return {"type": type(error).__name__, "code": code, "text": str(error)}


def make_message(fields: Fields) -> Message:
    return Message(
        fields["topic"],
        fields["body"].encode(),
        tags=fields.get("tags"),
        keys=fields.get("keys"),
        properties=fields.get("properties"),
        delay_level=fields.get("delay_level", 0),
    )


def make_received(fields: Fields) -> MessageExt:
    """Return a delivered message with the fields that ``create_reply_message`` reads."""
    nowhere = pack_host("127.0.0.1:0")
    numbers = (0, 0, 0, 0, 0, 0, 0, 0, 0, nowhere, 0, nowhere, 0, 0, 0)
    return MessageExt(numbers, b"", fields["topic"], format_properties(fields["properties"]).encode())


def describe_result(result: SendResult | RewindMQError) -> Fields:
    if isinstance(result, RewindMQError):
        return {"error": failure(result)}
    return {
        "status": result.status.name,
        "id": result.msg_id,
        "offset_id": result.offset_msg_id,
        "broker": result.message_queue.broker_name,
        "queue": result.message_queue.queue_id,
        "offset": result.queue_offset,
        "region": result.region,
        "transaction_state": None,
    }


def describe_message(message: MessageExt) -> Fields:
    return {
        "topic": message.topic,
        "broker": message.broker_name,
        "queue": message.queue_id,
        "offset": message.queue_offset,
        "id": message.msg_id,
        "offset_id": message.offset_message_id,
        "body": message.body.decode(),
        "tags": message.tags,
        "keys": message.keys,
        "properties": message.properties,
        "reconsume_times": message.reconsume_times,
        "born_ms": message.born_timestamp,
        "store_ms": message.store_timestamp,
        "store_host": message.store_host,
        "sys_flag": message.sys_flag,
    }


def describe_queue(queue: MessageQueue) -> Fields:
    return {"topic": queue.topic, "broker": queue.broker_name, "queue": queue.queue_id}


def make_queue(fields: Fields) -> MessageQueue:
    return MessageQueue(fields["topic"], fields["broker"], fields["queue"])
