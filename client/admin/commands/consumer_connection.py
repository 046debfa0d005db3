"""consumerConnection: show the consumers of a group and their subscriptions."""

from __future__ import annotations

import argparse
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Final

from rewindmq.client.admin.commands.command import Command, Printed

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-g", "--consumerGroup", required=True, metavar="GROUP", help="consumer group")
    parser.add_argument("-b", "--brokerAddr", metavar="HOST:PORT", help="ask only this broker")


async def _execute(admin: AdminClient, arguments: argparse.Namespace) -> AsyncGenerator[Printed]:
    from rewindmq.client.admin.shared_ids import shared_client_ids, shared_id_warnings
    from rewindmq.protocol.version import version_name

    address = arguments.brokerAddr.strip() if arguments.brokerAddr is not None else None
    connection = await admin.groups.examine_consumer_connection_info(arguments.consumerGroup.strip(), address)
    clients = sorted(connection.connection_set, key=lambda client: (client.client_id, client.client_addr))
    subscriptions = [subscription for _, subscription in sorted(connection.subscription_table.items())]
    lines = [_client_row("#ClientId", "#ClientAddr", "#Language", "#Version")]
    lines += [
        _client_row(client.client_id, client.client_addr, client.language, version_name(client.version))
        for client in clients
    ]
    lines += ["", "Below is subscription:", f"{'#Topic':<20} #SubExpression"]
    lines += [f"{subscription.topic:<20} {subscription.sub_string}" for subscription in subscriptions]
    lines += [
        "",
        f"ConsumeType: {connection.consume_type}",
        f"MessageModel: {connection.message_model}",
        f"ConsumeFromWhere: {connection.consume_from_where}",
    ]
    lines += [f"WARN: {text}" for text in shared_id_warnings(connection)]
    data = {
        "clients": [
            {
                "clientId": client.client_id,
                "clientAddr": client.client_addr,
                "language": client.language,
                "version": version_name(client.version),
            }
            for client in clients
        ],
        "subscriptions": {item.topic: item.sub_string for item in subscriptions},
        "consumeType": str(connection.consume_type),
        "messageModel": str(connection.message_model),
        "consumeFromWhere": str(connection.consume_from_where),
        "sharedClientIds": shared_client_ids(connection),
    }
    yield Printed(lines, data)


def _client_row(client_id: str, address: str, language: str, version: str) -> str:
    return f"{client_id:<36} {address:<22} {language:<10} {version}"


COMMAND: Final = Command(
    "consumerConnection",
    "Show the consumers of a group and their subscriptions.",
    "-g my_group",
    _add_arguments,
    _execute,
)
