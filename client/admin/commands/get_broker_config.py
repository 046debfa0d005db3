"""getBrokerConfig: show the present configuration of a broker, or of each master of a cluster."""

from __future__ import annotations

import argparse
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Final

from rewindmq.client.admin.commands.broker_target import add_broker_target, addressed_brokers
from rewindmq.client.admin.commands.command import Command, Printed

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient

_KEY_WIDTH: Final = 50


async def _execute(admin: AdminClient, arguments: argparse.Namespace) -> AsyncGenerator[Printed]:
    for address in await addressed_brokers(admin, arguments):
        config = await admin.brokers.get_broker_config(address)
        owner = "" if arguments.clusterName is None else "Master: "
        lines = [f"============{owner}{address}============"]
        lines += [f"{key:<{_KEY_WIDTH}}=  {value}" for key, value in config.items()]
        yield Printed([*lines, ""], {"brokerAddr": address, "config": config})


COMMAND: Final = Command(
    "getBrokerConfig",
    "Show the present configuration of brokers.",
    "-c DefaultCluster",
    add_broker_target,
    _execute,
)
