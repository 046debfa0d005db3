"""consumerStatus: show the running info of a group's consumers, and compare their subscriptions."""

from __future__ import annotations

import argparse
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rewindmq.client.admin.commands.command import Command, Printed
from rewindmq.protocol.errors import ClientError, RewindMQError
from rewindmq.protocol.names import path_name
from rewindmq.protocol.text import escape_lines

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient
    from rewindmq.protocol.body.connection import Connection
    from rewindmq.protocol.body.running_info import ConsumerRunningInfo


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-g", "--consumerGroup", required=True, metavar="GROUP", help="consumer group")
    parser.add_argument("-i", "--clientId", metavar="ID", help="show the running info of only this consumer")
    parser.add_argument(
        "-b", "--brokerAddr", metavar="HOST:PORT", help="ask this broker for the list of consumers"
    )
    parser.add_argument(
        "-s", "--jstack", action="store_true", help="include the stacks of the consumers' tasks and threads"
    )
    parser.add_argument(
        "-d",
        "--directory",
        type=Path,
        metavar="DIR",
        help="write each consumer's running info to a file in DIR (default: write no files)",
    )


async def _execute(admin: AdminClient, arguments: argparse.Namespace) -> AsyncGenerator[Printed]:
    from rewindmq.client.admin.running_info_report import format_running_info
    from rewindmq.client.admin.shared_ids import shared_id_warnings

    group = arguments.consumerGroup.strip()
    if arguments.clientId is not None:
        client_id = arguments.clientId.strip()
        info = await admin.groups.get_consumer_running_info(group, client_id, stacks=arguments.jstack)
        if arguments.directory is not None:
            _write(arguments.directory, client_id, format_running_info(info))
        yield Printed(format_running_info(info), _data(client_id, info))
        return
    address = arguments.brokerAddr.strip() if arguments.brokerAddr is not None else None
    connection = await admin.groups.examine_consumer_connection_info(group, address)
    infos: dict[str, ConsumerRunningInfo] = {}
    yield Printed([_row("#Index", "#ClientId", "#Version", "#ConsumerRunningInfoFile")], None)
    consumers = sorted(connection.connection_set, key=lambda consumer: consumer.client_id)
    for index, consumer in enumerate(consumers, 1):
        yield await _consumer_row(admin, arguments, index, consumer, infos)
    if warnings := shared_id_warnings(connection):
        yield Printed(["", *(f"WARN: {text}" for text in warnings)], {"warnings": warnings})
    if infos:
        yield _analyze(infos, admin.runtime.clock.now_ms())


async def _consumer_row(
    admin: AdminClient,
    arguments: argparse.Namespace,
    index: int,
    consumer: Connection,
    infos: dict[str, ConsumerRunningInfo],
) -> Printed:
    """Ask one consumer for its running info, put it into ``infos``, and return the consumer's row."""
    from rewindmq.client.admin.running_info_report import format_running_info
    from rewindmq.protocol.version import version_name

    client_id, version, place = consumer.client_id, version_name(consumer.version), "-"
    try:
        info = await admin.groups.get_consumer_running_info(
            arguments.consumerGroup.strip(), client_id, stacks=arguments.jstack
        )
    except RewindMQError as error:
        failure = f"{error}"
        return Printed(
            [_row(index, client_id, version, failure)], {"clientId": client_id, "failure": failure}
        )
    infos[client_id] = info
    if arguments.directory is not None:
        place = str(_write(arguments.directory, client_id, format_running_info(info)))
    return Printed([_row(index, client_id, version, place)], {**_data(client_id, info), "version": version})


def _analyze(infos: dict[str, ConsumerRunningInfo], now_ms: int) -> Printed:
    from rewindmq.client.admin.running_info_report import find_trouble, have_same_subscriptions

    if not have_same_subscriptions(infos, now_ms):
        warning = "WARN: Different subscription in the same group of consumer!!!"
        return Printed(["", "", warning], {"sameSubscription": False})
    trouble = [line for client_id, info in infos.items() for line in find_trouble(client_id, info, now_ms)]
    lines = ["", "", "Same subscription in the same group of consumer", "", "Rebalance OK", *trouble]
    return Printed(lines, {"sameSubscription": True, "trouble": trouble})


def _write(directory: Path, client_id: str, lines: list[str]) -> Path:
    path = directory / path_name(client_id)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        path.write_text(escape_lines(lines) + "\n")
    except OSError as error:
        raise ClientError(f"cannot write {path}: {error.strerror}") from None
    return path


def _data(client_id: str, info: ConsumerRunningInfo) -> dict[str, Any]:
    import msgspec

    queues = [
        {"topic": queue.topic, "brokerName": queue.broker_name, "queueId": queue.queue_id, **_plain(details)}
        for queue, details in sorted(info.mq_table.items())
    ]
    data = {
        "clientId": client_id,
        "properties": info.properties,
        "subscriptions": {item.topic: item.sub_string for item in info.subscription_set},
        "queues": queues,
        "rates": msgspec.to_builtins(info.status_table),
    }
    return data if info.jstack is None else {**data, "jstack": info.jstack}


def _plain(value: object) -> dict[str, Any]:
    import msgspec

    plain: dict[str, Any] = msgspec.to_builtins(value)
    return plain


def _row(index: object, client_id: str, version: str, last: str) -> str:
    return f"{index!s:<10} {client_id:<40} {version:<20} {last}"


COMMAND: Final = Command(
    "consumerStatus",
    "Show the running info of a group's consumers, and whether their subscriptions are the same.",
    "-g my_group",
    _add_arguments,
    _execute,
)
