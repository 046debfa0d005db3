"""updateBrokerConfig: change one key of a running broker, or of each master of a cluster."""

from __future__ import annotations

import argparse
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Final

from rewindmq.client.admin.commands.broker_target import add_broker_target, addressed_brokers
from rewindmq.client.admin.commands.command import Command, Printed

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_broker_target(parser)
    parser.add_argument("-k", "--key", required=True, help="a key of broker.conf")
    parser.add_argument("-v", "--value", required=True, help="the new value, until the broker restarts")


async def _execute(admin: AdminClient, arguments: argparse.Namespace) -> AsyncGenerator[Printed]:
    key, value = arguments.key.strip(), arguments.value.strip()
    for address in await addressed_brokers(admin, arguments):
        await admin.brokers.update_broker_config(address, {key: value})
        yield Printed(
            [f"update broker config success, {address}"], {"brokerAddr": address, "key": key, "value": value}
        )


COMMAND: Final = Command(
    "updateBrokerConfig",
    "Change one configuration key of running brokers.",
    "-c DefaultCluster -k emulatedBusy -v REJECTREQUEST",
    _add_arguments,
    _execute,
)
