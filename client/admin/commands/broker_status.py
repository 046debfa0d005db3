"""brokerStatus: show the runtime statistics of a broker, or of each master of a cluster."""

from __future__ import annotations

import argparse
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Final

from rewindmq.client.admin.commands.broker_target import add_broker_target, addressed_brokers
from rewindmq.client.admin.commands.command import Command, Printed

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient

_ADDRESS_WIDTH: Final = 24
_KEY_WIDTH: Final = 32


async def _execute(admin: AdminClient, arguments: argparse.Namespace) -> AsyncGenerator[Printed]:
    for address in await addressed_brokers(admin, arguments):
        stats = await admin.brokers.fetch_broker_runtime_stats(address)
        # mqadmin names the broker in each line if there may be several.
        owner = "" if arguments.clusterName is None else f"{address:<{_ADDRESS_WIDTH}} "
        lines = [f"{owner}{key:<{_KEY_WIDTH}}: {value}" for key, value in sorted(stats.items())]
        yield Printed(lines, {"brokerAddr": address, "stats": stats})


COMMAND: Final = Command(
    "brokerStatus",
    "Show the runtime statistics of brokers.",
    "-b 127.0.0.1:10911",
    add_broker_target,
    _execute,
)
