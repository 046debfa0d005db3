"""``rewindmq lag``: how many messages the groups have not consumed, once or until Ctrl-C.

With ``--json``, standard output gets one JSON object per look.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from rewindmq.client.cli.admin_work import run_with_admin
from rewindmq.protocol.remoting.process.options import positive_factor

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient
    from rewindmq.protocol.remoting.runtime import Runtime

EPILOG: Final = """\
examples:
  rewindmq lag                                  one line for each group
  rewindmq lag -g billing                       one line for each queue of a group
  rewindmq lag -g billing --watch               again every 2 s, until Ctrl-C
  rewindmq lag --watch 0.5 --json               one JSON object every half second
"""

_WATCH_SECONDS: Final = 2.0
_CLEAR: Final = "\x1b[H\x1b[2J"


@dataclass(frozen=True, slots=True)
class QueueLag:
    """A group's progress in one queue; ``lag`` is the number of messages behind the stored offset."""

    topic: str
    broker: str
    queue: int
    stored: int
    end: int
    lag: int


@dataclass(frozen=True, slots=True)
class GroupLag:
    """A group's progress.

    Attributes:
        consumers: number of connected consumers.
        lag: messages behind in all queues; None of a broadcasting group, whose consumers keep the offsets.
        notes: what else to know of the group, a sentence each.
    """

    group: str
    consumers: int
    lag: int | None
    queues: list[QueueLag] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options of ``lag``."""
    parser.add_argument("-g", "--group", metavar="GROUP", help="one group, a line for each queue")
    parser.add_argument(
        "-n", "--namesrv", metavar="ADDR", help="host:port[;host:port] (default: NAMESRV_ADDR)"
    )
    parser.add_argument(
        "--watch",
        nargs="?",
        type=positive_factor,
        const=_WATCH_SECONDS,
        metavar="SECONDS",
        help=f"look again every SECONDS (default: {_WATCH_SECONDS:g}), until Ctrl-C",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per look")


def run(arguments: argparse.Namespace) -> int:
    """Print the lag, and return the exit code."""
    return run_with_admin(arguments.namesrv, partial(_show, arguments=arguments))


async def _show(admin: AdminClient, runtime: Runtime, arguments: argparse.Namespace) -> None:
    while True:
        groups = [arguments.group] if arguments.group is not None else await admin.groups.consumer_groups()
        found = [await _lag_of(admin, group) for group in groups]
        if arguments.json:
            print(_json(found, runtime.clock.now_ms()))
        else:
            if arguments.watch and sys.stdout.isatty():
                print(_CLEAR, end="")
            print(_table_of_queues(found[0]) if arguments.group is not None else _table_of_groups(found))
        sys.stdout.flush()
        if not arguments.watch:
            return
        await runtime.timers.sleep(arguments.watch)


async def _lag_of(admin: AdminClient, group: str) -> GroupLag:
    """Return a group's progress; a group without any offset has no queues.

    Raises:
        ResponseError: TOPIC_NOT_EXIST (17) if no broker knows the group.
    """
    from rewindmq.client.admin.groups import BROADCASTING_NOTE
    from rewindmq.client.admin.shared_ids import shared_id_warnings
    from rewindmq.protocol.body.heartbeat import MessageModel
    from rewindmq.protocol.code import ResponseCode
    from rewindmq.protocol.errors import ResponseError

    queues: list[QueueLag] = []
    consumers, notes = 0, list[str]()
    try:
        connection = await admin.groups.examine_consumer_connection_info(group)
        consumers = len(connection.connection_set)
        if connection.message_model is MessageModel.BROADCASTING:
            return GroupLag(group, consumers, None, notes=[BROADCASTING_NOTE])
        notes = shared_id_warnings(connection)
    except ResponseError as error:
        if error.code != ResponseCode.CONSUMER_NOT_ONLINE:
            raise
    try:
        table = (await admin.groups.examine_consume_stats(group)).offset_table
    except ResponseError as error:
        if error.code != ResponseCode.CONSUMER_NOT_ONLINE:
            raise
        table = {}
    for queue, entry in sorted(table.items()):
        lag = entry.broker_offset - entry.consumer_offset
        place = queue.topic, queue.broker_name, queue.queue_id
        queues.append(QueueLag(*place, entry.consumer_offset, entry.broker_offset, lag))
    return GroupLag(group, consumers, sum(queue.lag for queue in queues), queues, notes)


def _table_of_groups(groups: list[GroupLag]) -> str:
    if not groups:
        return "no consumer group has connected yet, and none has an offset"
    rows: list[tuple[str, ...]] = [("group", "consumers", "lag")]
    rows += [(each.group, str(each.consumers), _number(each.lag)) for each in groups]
    return "\n".join(
        [_table(rows), *(_line(f"{each.group}: {note}") for each in groups for note in each.notes)]
    )


def _table_of_queues(group: GroupLag) -> str:
    rows: list[tuple[str, ...]] = [("topic", "queue", "stored", "end", "lag")]
    rows += [
        (queue.topic, f"{queue.broker}/{queue.queue}", str(queue.stored), str(queue.end), str(queue.lag))
        for queue in group.queues
    ]
    consumers = "1 consumer" if group.consumers == 1 else f"{group.consumers} consumers"
    parts = [] if group.lag is None else [_table(rows)]
    return "\n".join([*parts, f"{consumers}, lag {_number(group.lag)}", *map(_line, group.notes)])


def _number(lag: int | None) -> str:
    return "-" if lag is None else str(lag)


def _line(text: str) -> str:
    from rewindmq.protocol.text import escape_controls

    return escape_controls(text)


def _table(rows: list[tuple[str, ...]]) -> str:
    rows = [tuple(map(_line, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def _json(groups: list[GroupLag], at: int) -> str:
    looked: dict[str, Any] = {"at": at, "groups": [asdict(group) for group in groups]}
    return json.dumps(looked, separators=(",", ":"))
