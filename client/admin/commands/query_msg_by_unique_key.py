"""queryMsgByUniqueKey: a message by the id its producer gave it."""

from __future__ import annotations

import argparse
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, Final

from rewindmq.client.admin.commands.command import Command, Printed
from rewindmq.client.admin.timestamp import format_milliseconds

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient
    from rewindmq.protocol.message import MessageExt

# The printf format of mqadmin's details.
_LABEL_WIDTH: Final = 20


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-i", "--msgId", required=True, metavar="ID", help="the id the producer printed")
    parser.add_argument("-t", "--topic", required=True, help="topic name")
    parser.add_argument(
        "-a",
        "--showAll",
        action="store_true",
        help="show every message of that id, not the oldest alone (at most 32 of a broker)",
    )


async def _execute(admin: AdminClient, arguments: argparse.Namespace) -> AsyncGenerator[Printed]:
    found = await admin.query_message_by_unique_key(arguments.topic.strip(), arguments.msgId.strip())
    shown = found if arguments.showAll else found[:1]
    details = [_details(message) for message in shown]
    lines = [
        line
        for detail in details
        for line in (*(f"{label + ':':<{_LABEL_WIDTH}} {value}" for label, value in detail.items()), "")
    ]
    yield Printed(lines, [_data(message) for message in shown])


def _details(message: MessageExt) -> dict[str, object]:
    properties = ", ".join(f"{name}={value}" for name, value in message.properties.items())
    return {
        "Topic": message.topic,
        "Tags": f"[{message.tags or 'null'}]",
        "Keys": f"[{message.keys or 'null'}]",
        "Queue ID": message.queue_id,
        "Queue Offset": message.queue_offset,
        "CommitLog Offset": message.commit_log_offset,
        "Reconsume Times": message.reconsume_times,
        "Born Timestamp": format_milliseconds(message.born_timestamp),
        "Store Timestamp": format_milliseconds(message.store_timestamp),
        "Born Host": message.born_host,
        "Store Host": message.store_host,
        "System Flag": message.sys_flag,
        "Properties": f"{{{properties}}}",
        "Message Body": f"{len(message.stored_body)} bytes as stored",
    }


def _data(message: MessageExt) -> dict[str, Any]:
    return {
        "msgId": message.msg_id,
        "offsetMsgId": message.offset_message_id,
        "topic": message.topic,
        "brokerName": message.broker_name,
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
        "commitLogOffset": message.commit_log_offset,
        "reconsumeTimes": message.reconsume_times,
        "bornTimestamp": message.born_timestamp,
        "storeTimestamp": message.store_timestamp,
        "bornHost": message.born_host,
        "storeHost": message.store_host,
        "sysFlag": message.sys_flag,
        "properties": message.properties,
        "storedBodyBytes": len(message.stored_body),
    }


COMMAND: Final = Command(
    "queryMsgByUniqueKey",
    "Show the message with the id its producer gave it.",
    "-t TopicTest -i 7F0000010BB014DAD5DC0A1B2C3D0000",
    _add_arguments,
    _execute,
)
