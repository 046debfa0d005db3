"""queryMsgTraceById: show the traced sends, listener calls and transaction ends of a message."""

from __future__ import annotations

import argparse
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, Final

from rewindmq.client.admin.commands.command import Command, Printed
from rewindmq.client.admin.timestamp import format_seconds

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient
    from rewindmq.client.admin.message_trace import TraceLine

_PUB_TITLES: Final = ("#Type", "#ProducerGroup", "#ClientHost", "#SendTime", "#CostTimes", "#Status")
_SUB_TITLES: Final = ("#Type", "#ConsumerGroup", "#ClientHost", "#ConsumerTime", "#CostTimes", "#Status")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-i", "--msgId", required=True, metavar="ID", help="the message id that the producer printed"
    )
    parser.add_argument(
        "-t",
        "--traceTopic",
        default="RMQ_SYS_TRACE_TOPIC",
        help="trace topic (default: RMQ_SYS_TRACE_TOPIC)",
    )


async def _execute(admin: AdminClient, arguments: argparse.Namespace) -> AsyncGenerator[Printed]:
    found = await admin.messages.query_message_trace(arguments.msgId.strip(), arguments.traceTopic.strip())
    for line in found:
        if line.kind == "Pub":
            yield Printed([_row(_PUB_TITLES), _line(line), ""], _data(line))
    groups = dict.fromkeys(line.group for line in found if line.kind == "Sub")
    for group in groups:
        calls = [line for line in found if line.kind == "Sub" and line.group == group]
        yield Printed([_row(_SUB_TITLES), *map(_line, calls), ""], [_data(line) for line in calls])
    for line in found:
        if line.kind == "EndTransaction":
            yield Printed([_row(_PUB_TITLES), _line(line), ""], _data(line))


def _line(line: TraceLine) -> str:
    time = format_seconds(line.timestamp)
    return _row((line.kind, line.group, line.client_host, time, f"{line.cost_time}ms", line.status))


def _row(values: tuple[str, ...]) -> str:
    kind, group, host, time, cost, status = values
    return f"{kind:<10} {group:<20} {host:<20} {time:<20} {cost:<10} {status:<10}".rstrip()


def _data(line: TraceLine) -> dict[str, Any]:
    return {
        "type": line.kind,
        "group": line.group,
        "clientHost": line.client_host,
        "timestamp": line.timestamp,
        "costTime": line.cost_time,
        "status": line.status,
    }


COMMAND: Final = Command(
    "queryMsgTraceById",
    "Show which clients sent and consumed a message, if they were traced.",
    "-i 7F0000010BB014DAD5DC0A1B2C3D0000",
    _add_arguments,
    _execute,
)
