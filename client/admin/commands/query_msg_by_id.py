"""queryMsgById: the message at the place that an offset message id names."""

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
        "-i", "--msgId", required=True, metavar="ID[,ID]", help="offset message ids, separated by commas"
    )


async def _execute(admin: AdminClient, arguments: argparse.Namespace) -> AsyncGenerator[Printed]:
    for text in arguments.msgId.split(","):
        message = await admin.view_message(text.strip())
        shown = {"OffsetID": message.offset_message_id, **details(message)}
        yield Printed(lines(shown), data(message))


COMMAND: Final = Command(
    "queryMsgById",
    "Show the message that an offset message id names.",
    "-i 7F00000100002A9F0000000000000000",
    _add_arguments,
    _execute,
)
