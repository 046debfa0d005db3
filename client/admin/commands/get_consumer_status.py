"""getConsumerStatus: show the offsets that a group's consumers have in memory."""

from __future__ import annotations

import argparse
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Final

from rewindmq.client.admin.commands.command import Command, Printed

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-g", "--group", required=True, help="consumer group")
    parser.add_argument("-t", "--topic", required=True, help="topic name")
    parser.add_argument("-i", "--originClientId", metavar="ID", help="ask only this consumer")


async def _execute(admin: AdminClient, arguments: argparse.Namespace) -> AsyncGenerator[Printed]:
    group, topic = arguments.group.strip(), arguments.topic.strip()
    client = (arguments.originClientId or "").strip() or None
    table = await admin.groups.get_consumer_status(topic, group, client)
    lines = [
        f"get consumer status from client. group={group}, topic={topic}, originClientId={client or ''}",
        _row("#clientId", "#brokerName", "#queueId", "#offset"),
    ]
    lines += [
        _row(name[:50], queue.broker_name, queue.queue_id, offset)
        for name, offsets in table.items()
        for queue, offset in offsets.items()
    ]
    data = [
        {"clientId": name, "brokerName": queue.broker_name, "queueId": queue.queue_id, "offset": offset}
        for name, offsets in table.items()
        for queue, offset in offsets.items()
    ]
    yield Printed(lines, data)


def _row(client_id: str, broker: str, queue_id: object, offset: object) -> str:
    return f"{client_id:<50}  {broker:<15}  {queue_id!s:<15}  {offset!s:<20}"


COMMAND: Final = Command(
    "getConsumerStatus",
    "Show the offsets in the memory of a group's consumers, committed or not.",
    "-g my_group -t TopicTest",
    _add_arguments,
    _execute,
)
