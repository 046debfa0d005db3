"""cloneGroupOffset: copy the stored offsets of one group to another."""

from __future__ import annotations

import argparse
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Final

from rewindmq.client.admin.commands.command import Command, Printed
from rewindmq.protocol.errors import ClientError

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-s", "--srcGroup", required=True, metavar="GROUP", help="the group to copy from")
    parser.add_argument("-d", "--destGroup", required=True, metavar="GROUP", help="the group to copy to")
    parser.add_argument("-t", "--topic", help="copy only the offsets in this topic")
    parser.add_argument(
        "--all-topics", action="store_true", help="copy all offsets of the source except its retry topic's"
    )
    parser.add_argument("-o", "--offline", metavar="true|false", help="ignored, as in mqadmin")


async def _execute(admin: AdminClient, arguments: argparse.Namespace) -> AsyncGenerator[Printed]:
    if (arguments.topic is None) == (not arguments.all_topics):
        raise ClientError("name a topic with -t, or give --all-topics, but not both")
    source, destination = arguments.srcGroup.strip(), arguments.destGroup.strip()
    topic = None if arguments.topic is None else arguments.topic.strip()
    result = await admin.resets.clone_group_offset(source, destination, topic)
    lines = [
        f"clone group offset success. srcGroup[{source}], destGroup=[{destination}], topic[{each}]"
        for each in result.topics
    ]
    data = [
        {"topic": queue.topic, "brokerName": queue.broker_name, "queueId": queue.queue_id, "offset": offset}
        for queue, offset in result.offset_table.items()
    ]
    yield Printed(lines, {"srcGroup": source, "destGroup": destination, "queues": data})


COMMAND: Final = Command(
    "cloneGroupOffset",
    "Copy the stored offsets of one consumer group to another, in one topic or all.",
    "-s my_group -d its_copy -t TopicTest",
    _add_arguments,
    _execute,
)
