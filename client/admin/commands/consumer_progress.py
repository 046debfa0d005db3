"""consumerProgress: show the offsets and the lag of one group, or of all groups."""

from __future__ import annotations

import argparse
import contextlib
import logging
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, Final

from rewindmq.client.admin.commands.command import Command, Printed, true_or_false
from rewindmq.client.admin.timestamp import format_seconds
from rewindmq.protocol.errors import RewindMQError

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient
    from rewindmq.protocol.body.connection import ConsumerConnection
    from rewindmq.protocol.message_queue import MessageQueue

_log = logging.getLogger(__name__)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-g", "--groupName", metavar="GROUP", help="one consumer group (default: all groups, a line each)"
    )
    parser.add_argument(
        "-s",
        "--showClientIP",
        type=true_or_false,
        default=False,
        metavar="true|false",
        help="show the IP address of the consumer that owns each queue (default: false)",
    )


async def _execute(admin: AdminClient, arguments: argparse.Namespace) -> AsyncGenerator[Printed]:
    if arguments.groupName is not None:
        yield await _one_group(admin, arguments.groupName.strip(), arguments.showClientIP)
        return
    yield Printed(
        [_group_row("#Group", "#Count", "#Version", "#Type", "#Model", "#TPS", "#Diff Total")], None
    )
    for group in await admin.groups.consumer_groups():
        yield await _summary(admin, group)


async def _one_group(admin: AdminClient, group: str, show_client_ip: bool) -> Printed:
    stats = await admin.groups.examine_consume_stats(group)
    await _warn_of_broadcasting(admin, group)
    owners = await _owners(admin, group) if show_client_ip else None
    heading = "#Client IP" if show_client_ip else None
    lines = [
        _queue_row(
            "#Topic",
            "#Broker Name",
            "#QID",
            "#Broker Offset",
            "#Consumer Offset",
            heading,
            "#Diff",
            "#LastTime",
        )
    ]
    queues = []
    for queue, entry in sorted(stats.offset_table.items()):
        owner = owners.get(queue, "NA") if owners is not None else None
        diff = entry.broker_offset - entry.consumer_offset
        lines.append(
            _queue_row(
                queue.topic[:64],
                queue.broker_name[:32],
                queue.queue_id,
                entry.broker_offset,
                entry.consumer_offset,
                owner,
                diff,
                format_seconds(entry.last_timestamp) if entry.last_timestamp else "N/A",
            )
        )
        row: dict[str, Any] = {
            "topic": queue.topic,
            "brokerName": queue.broker_name,
            "queueId": queue.queue_id,
            "brokerOffset": entry.broker_offset,
            "consumerOffset": entry.consumer_offset,
            "diff": diff,
            "lastTimestamp": entry.last_timestamp,
        }
        if owner is not None:
            row["clientIP"] = owner
        queues.append(row)
    total = stats.total_diff()
    lines += ["", f"Consume TPS: {stats.consume_tps:.2f}", f"Diff Total: {total}"]
    data = {"group": group, "consumeTps": stats.consume_tps, "diffTotal": total, "queues": queues}
    return Printed(lines, data)


async def _warn_of_broadcasting(admin: AdminClient, group: str) -> None:
    """Warn if the offsets are not those of the consumers; mqadmin prints them without a word."""
    from rewindmq.client.admin.groups import BROADCASTING_NOTE
    from rewindmq.protocol.body.heartbeat import MessageModel

    with contextlib.suppress(RewindMQError):
        connection = await admin.groups.examine_consumer_connection_info(group)
        if connection.message_model is MessageModel.BROADCASTING:
            _log.warning("group %s: %s", group, BROADCASTING_NOTE)


async def _owners(admin: AdminClient, group: str) -> dict[MessageQueue, str]:
    """Return the IP address of the consumer that owns each queue.

    After an error the table has only the consumers that were asked before.
    """
    owners = {}
    try:
        connection = await admin.groups.examine_consumer_connection_info(group)
        for client in connection.connection_set:
            running = await admin.groups.get_consumer_running_info(group, client.client_id)
            for queue in running.mq_table:
                owners[queue] = client.client_addr.rpartition(":")[0]
    except RewindMQError as error:
        _log.warning("group %s: %s", group, error)
    return owners


async def _summary(admin: AdminClient, group: str) -> Printed:
    tps, diff = 0, 0
    try:
        stats = await admin.groups.examine_consume_stats(group)
        tps, diff = int(stats.consume_tps), stats.total_diff()
    except RewindMQError as error:
        _log.warning("group %s: %s", group, error)
    count, version, kind, model = 0, "OFFLINE", "", ""
    try:
        connection = await admin.groups.examine_consumer_connection_info(group)
        count, version, kind, model = _describe(connection)
    except RewindMQError as error:
        _log.warning("group %s: %s", group, error)
    data = {
        "group": group,
        "count": count,
        "version": version,
        "type": kind,
        "model": model,
        "tps": tps,
        "diffTotal": diff,
    }
    return Printed([_group_row(group[:64], count, version, kind, model, tps, diff)], data)


def _describe(connection: ConsumerConnection) -> tuple[int, str, str, str]:
    """Return the number of consumers, their lowest version, PULL or PUSH, and for PUSH the message model."""
    from rewindmq.protocol.body.heartbeat import ConsumeType
    from rewindmq.protocol.version import version_name

    version = version_name(min(client.version for client in connection.connection_set))
    is_pull = connection.consume_type is ConsumeType.CONSUME_ACTIVELY
    model = str(connection.message_model) if connection.consume_type is ConsumeType.CONSUME_PASSIVELY else ""
    return len(connection.connection_set), version, "PULL" if is_pull else "PUSH", model


def _queue_row(*columns: Any) -> str:
    topic, broker, queue_id, broker_offset, consumer_offset, client, diff, last = columns
    # mqadmin puts one space after the client's column, two after the others.
    owner = "" if client is None else f"{client:<20} "
    return (
        f"{topic:<64}  {broker:<32}  {queue_id!s:<4}  {broker_offset!s:<20}  {consumer_offset!s:<20}  "
        f"{owner}{diff!s:<20}  {last}"
    )


def _group_row(*columns: Any) -> str:
    group, count, version, kind, model, tps, diff = columns
    return f"{group:<64}  {count!s:<6}  {version:<24} {kind:<5}  {model:<14}  {tps!s:<7}  {diff}"


COMMAND: Final = Command(
    "consumerProgress",
    "Show the offsets and the lag of consumer groups.",
    "-g my_group",
    _add_arguments,
    _execute,
)
