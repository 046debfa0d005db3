"""fencedCommits: list refused commits of deliveries from before a fenced reset."""

from __future__ import annotations

import argparse
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, Final

from rewindmq.client.admin.commands.command import Command, Printed
from rewindmq.client.admin.timestamp import format_milliseconds

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient
    from rewindmq.protocol.body.fenced_commit import FencedCommit

_COLUMNS: Final = (
    *("#Time", "#Broker", "#Group", "#Topic", "#QID", "#Offset", "#Epoch", "#Stored", "#Stored Epoch"),
    *("#By", "#Client", "#Reason"),
)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-g", "--group", help="only commits of this consumer group")
    parser.add_argument("-t", "--topic", help="only commits in this topic")
    parser.add_argument("-b", "--brokerAddr", metavar="HOST:PORT", help="ask only this broker")


async def _execute(admin: AdminClient, arguments: argparse.Namespace) -> AsyncGenerator[Printed]:
    lists = await admin.resets.fenced_commits(arguments.group, arguments.topic, arguments.brokerAddr)
    lines = [_row(*_COLUMNS)]
    data = []
    for broker, listed in lists.items():
        lines += [_commit_row(broker, commit) for commit in listed.commits]
        data.append(
            {
                "broker": broker,
                "total": listed.total,
                "commits": [_fields(commit) for commit in listed.commits],
            }
        )
    count = sum(len(listed.commits) for listed in lists.values())
    total = sum(listed.total for listed in lists.values())
    lines += ["", f"Listed: {count}, of {total} since the brokers started"]
    yield Printed(lines, data)


def _commit_row(broker: str, commit: FencedCommit) -> str:
    return _row(
        format_milliseconds(commit.at),
        broker,
        commit.group,
        commit.topic,
        commit.queue_id,
        commit.offset,
        "-" if commit.epoch is None else commit.epoch,
        commit.stored_offset,
        commit.stored_epoch,
        commit.carrier,
        commit.client_id or commit.client,
        commit.reason,
    )


def _row(*columns: object) -> str:
    widths = (23, 20, 24, 24, 5, 12, 7, 12, 14, 4, 36, 0)
    return "  ".join(f"{column!s:<{width}}" for column, width in zip(columns, widths, strict=True))


def _fields(commit: FencedCommit) -> dict[str, Any]:
    import msgspec

    return {field.encode_name: getattr(commit, field.name) for field in msgspec.structs.fields(commit)}


COMMAND: Final = Command(
    "fencedCommits",
    "List the commits that brokers refused because they are of deliveries from before a fenced reset.",
    "-g my_group -t TopicTest",
    _add_arguments,
    _execute,
)
