"""queryMsgByUniqueKey: show the message with the unique id that its producer gave it."""

from __future__ import annotations

import argparse
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Final

from rewindmq.client.admin.commands.command import Command, Printed
from rewindmq.client.admin.commands.message_details import data, details, lines

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-i", "--msgId", required=True, metavar="ID", help="the message id that the producer printed"
    )
    parser.add_argument("-t", "--topic", required=True, help="topic name")
    parser.add_argument(
        "-a",
        "--showAll",
        action="store_true",
        help="show all messages with that id, at most 32 of each broker (default: only the oldest)",
    )


async def _execute(admin: AdminClient, arguments: argparse.Namespace) -> AsyncGenerator[Printed]:
    found = await admin.messages.query_message_by_unique_key(arguments.topic.strip(), arguments.msgId.strip())
    shown = found if arguments.showAll else found[:1]
    yield Printed(
        [line for message in shown for line in lines(details(message))], [data(message) for message in shown]
    )


COMMAND: Final = Command(
    "queryMsgByUniqueKey",
    "Show the message with the unique id that its producer gave it.",
    "-t TopicTest -i 7F0000010BB014DAD5DC0A1B2C3D0000",
    _add_arguments,
    _execute,
)
