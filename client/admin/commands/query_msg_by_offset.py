"""queryMsgByOffset: show the message at one offset of a queue."""

from __future__ import annotations

import argparse
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Final

from rewindmq.client.admin.commands.command import Command, Printed
from rewindmq.client.admin.commands.message_details import data, details, lines

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-t", "--topic", required=True, help="topic name")
    parser.add_argument(
        "-b", "--brokerName", required=True, metavar="NAME", help="name of the queue's broker"
    )
    parser.add_argument("-i", "--queueId", type=int, required=True, metavar="ID", help="queue id")
    parser.add_argument("-o", "--offset", type=int, required=True, metavar="N", help="offset in the queue")


async def _execute(admin: AdminClient, arguments: argparse.Namespace) -> AsyncGenerator[Printed]:
    from rewindmq.protocol.message_queue import MessageQueue

    queue = MessageQueue(arguments.topic.strip(), arguments.brokerName.strip(), arguments.queueId)
    message = await admin.messages.message_at(queue, arguments.offset)
    shown = {"OffsetID": message.offset_message_id, **details(message)}
    yield Printed(lines(shown), data(message))


COMMAND: Final = Command(
    "queryMsgByOffset",
    "Show the message at one offset of a queue.",
    "-t TopicTest -b broker-a -i 0 -o 7",
    _add_arguments,
    _execute,
)
