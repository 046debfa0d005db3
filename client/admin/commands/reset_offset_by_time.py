"""resetOffsetByTime: move a group to a point in time."""

from __future__ import annotations

import argparse
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Final

from rewindmq.client.admin.commands.command import Command, Printed, java_bool, true_or_false
from rewindmq.client.admin.commands.reset_tables import reset_or_write

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-g", "--group", required=True, help="consumer group")
    parser.add_argument("-t", "--topic", required=True, help="topic name")
    parser.add_argument(
        "-s",
        "--timestamp",
        required=True,
        help="milliseconds, yyyy-MM-dd#HH:mm:ss:SSS in local time, -1 for the end of every queue, or now "
        "(the end of every queue with --profile v49, the current time with v42 and v53)",
    )
    add_force(parser)
    parser.add_argument(
        "-c",
        "--cplus",
        action="store_true",
        help="the group's clients are C++ clients; others ignore such a reset",
    )


def add_force(parser: argparse.ArgumentParser) -> None:
    """Define ``-f``."""
    parser.add_argument(
        "-f",
        "--force",
        type=true_or_false,
        default=True,
        metavar="true|false",
        help="false moves a queue only where that moves it back (default: true)",
    )


async def _execute(admin: AdminClient, arguments: argparse.Namespace) -> AsyncGenerator[Printed]:
    group, topic, text = arguments.group.strip(), arguments.topic.strip(), arguments.timestamp.strip()
    timestamp = admin.parse_timestamp(text)
    online, table = await reset_or_write(
        admin, topic, group, timestamp, arguments.force, is_cpp=arguments.cplus
    )
    heading = (
        f"rollback consumer offset by specified {'group' if online else 'consumerGroup'}[{group}], "
        f"topic[{topic}], force[{java_bool(arguments.force)}], timestamp(string)[{text}], "
        f"timestamp(long)[{timestamp}]"
    )
    data = {
        "group": group,
        "topic": topic,
        "force": arguments.force,
        "timestamp": timestamp,
        "online": online,
        "queues": table.data,
    }
    yield Printed([heading, *table.lines], data)


COMMAND: Final = Command(
    "resetOffsetByTime",
    "Move a consumer group to a point in time, without restarting its clients.",
    "-g my_group -t TopicTest -s 2026-01-31#08:00:00:000",
    _add_arguments,
    _execute,
)
