"""skipAccumulatedMessage: reset a group to the end of every queue."""

from __future__ import annotations

import argparse
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Final

from rewindmq.client.admin.commands.command import Command, Printed
from rewindmq.client.admin.commands.reset_offset_by_time import add_force, add_mode
from rewindmq.client.admin.commands.reset_tables import mode_note, reset_data, reset_table
from rewindmq.client.admin.timestamp import MAX_OFFSET_TIMESTAMP

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-g", "--group", required=True, help="consumer group")
    parser.add_argument("-t", "--topic", required=True, help="topic name")
    add_force(parser)
    add_mode(parser)


async def _execute(admin: AdminClient, arguments: argparse.Namespace) -> AsyncGenerator[Printed]:
    group, topic = arguments.group.strip(), arguments.topic.strip()
    result = await admin.resets.reset(
        topic, group, MAX_OFFSET_TIMESTAMP, mode=arguments.mode, force=arguments.force
    )
    note = mode_note(result, arguments.mode)
    data = {"group": group, "topic": topic, "force": arguments.force, **reset_data(result)}
    yield Printed([*([] if note is None else [note]), *reset_table(result).lines], data)


COMMAND: Final = Command(
    "skipAccumulatedMessage",
    "Reset a consumer group to the end of every queue.",
    "-g my_group -t TopicTest",
    _add_arguments,
    _execute,
)
