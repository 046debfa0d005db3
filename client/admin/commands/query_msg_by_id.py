"""queryMsgById: show the message with an offset message id, or pass it to a consumer's listener."""

from __future__ import annotations

import argparse
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Final

from rewindmq.client.admin.commands.command import Command, Printed, java_bool
from rewindmq.client.admin.commands.message_details import data, details, lines
from rewindmq.protocol.errors import ClientError

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-i", "--msgId", required=True, metavar="ID[,ID]", help="offset message ids, separated by commas"
    )
    parser.add_argument(
        "-g",
        "--consumerGroup",
        metavar="GROUP",
        help="with -d: pass the message to the listener of a consumer of this group",
    )
    parser.add_argument("-d", "--clientId", metavar="ID", help="with -g: the consumer's client id")


async def _execute(admin: AdminClient, arguments: argparse.Namespace) -> AsyncGenerator[Printed]:
    if (arguments.consumerGroup is None) != (arguments.clientId is None):
        raise ClientError("-g and -d go together: the group, and the client id of one of its consumers")
    for text in arguments.msgId.split(","):
        if arguments.clientId is not None:
            yield await _consume_directly(admin, arguments, text.strip())
            continue
        message = await admin.messages.view_message(text.strip())
        shown = {"OffsetID": message.offset_message_id, **details(message)}
        yield Printed(lines(shown), data(message))


async def _consume_directly(admin: AdminClient, arguments: argparse.Namespace, message_id: str) -> Printed:
    group, client_id = arguments.consumerGroup.strip(), arguments.clientId.strip()
    result = await admin.groups.consume_message_directly(group, client_id, message_id)
    line = (
        f"ConsumeMessageDirectlyResult [order={java_bool(result.order)},"
        f" autoCommit={java_bool(result.auto_commit)}, consumeResult={result.consume_result},"
        f" remark={result.remark or 'null'}, spentTimeMills={result.spent_time_mills}]"
    )
    fields = {
        "msgId": message_id,
        "consumeResult": str(result.consume_result),
        "remark": result.remark,
        "order": result.order,
        "autoCommit": result.auto_commit,
        "spentTimeMills": result.spent_time_mills,
    }
    return Printed([line], fields)


COMMAND: Final = Command(
    "queryMsgById",
    "Show the message with an offset message id.",
    "-i 7F00000100002A9F0000000000000000",
    _add_arguments,
    _execute,
)
