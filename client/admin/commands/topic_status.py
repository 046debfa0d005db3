"""topicStatus: show minimum, maximum and last store time of each queue of a topic."""

from __future__ import annotations

import argparse
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Final

from rewindmq.client.admin.commands.command import Command, Printed
from rewindmq.client.admin.timestamp import format_milliseconds

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-t", "--topic", required=True, help="topic name")


async def _execute(admin: AdminClient, arguments: argparse.Namespace) -> AsyncGenerator[Printed]:
    stats = await admin.topics.examine_topic_stats(arguments.topic.strip())
    lines = [_row("#Broker Name", "#QID", "#Min Offset", "#Max Offset", "#Last Updated")]
    data = []
    for queue, entry in sorted(stats.offset_table.items()):
        updated = entry.last_update_timestamp
        lines.append(
            _row(
                queue.broker_name[:32],
                queue.queue_id,
                entry.min_offset,
                entry.max_offset,
                format_milliseconds(updated) if updated > 0 else "",
            )
        )
        data.append(
            {
                "brokerName": queue.broker_name,
                "queueId": queue.queue_id,
                "minOffset": entry.min_offset,
                "maxOffset": entry.max_offset,
                "lastUpdateTimestamp": updated,
            }
        )
    yield Printed(lines, data)


def _row(broker: str, queue_id: object, minimum: object, maximum: object, updated: str) -> str:
    return f"{broker:<32}  {queue_id!s:<4}  {minimum!s:<20}  {maximum!s:<20}    {updated}"


COMMAND: Final = Command(
    "topicStatus",
    "Show minimum offset, maximum offset and last store time of each queue.",
    "-t TopicTest",
    _add_arguments,
    _execute,
)
