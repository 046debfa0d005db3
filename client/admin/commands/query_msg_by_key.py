"""queryMsgByKey: list the messages with a key."""

from __future__ import annotations

import argparse
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Final

from rewindmq.client.admin.commands.command import Command, Printed

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-t", "--topic", required=True, help="topic name")
    parser.add_argument("-k", "--msgKey", required=True, metavar="KEY", help="one of the messages' keys")


async def _execute(admin: AdminClient, arguments: argparse.Namespace) -> AsyncGenerator[Printed]:
    found = await admin.messages.query_message(arguments.topic.strip(), arguments.msgKey.strip())
    lines = [_row("#Message ID", "#QID", "#Offset")]
    lines += [_row(message.msg_id, message.queue_id, message.queue_offset) for message in found]
    data = [
        {
            "msgId": message.msg_id,
            "brokerName": message.broker_name,
            "queueId": message.queue_id,
            "queueOffset": message.queue_offset,
            "storeTimestamp": message.store_timestamp,
        }
        for message in found
    ]
    yield Printed(lines, data)


def _row(message_id: str, queue_id: object, offset: object) -> str:
    return f"{message_id:<50} {queue_id!s:>4} {offset!s:>40}"


COMMAND: Final = Command(
    "queryMsgByKey",
    "List the messages with a key.",
    "-t TopicTest -k order-4711",
    _add_arguments,
    _execute,
)
