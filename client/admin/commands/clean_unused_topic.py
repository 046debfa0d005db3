"""cleanUnusedTopic: remove the ConsumeQueues of topics that a broker no longer has."""

from __future__ import annotations

import argparse
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Final

from rewindmq.client.admin.commands.broker_target import add_broker_target, addressed_brokers
from rewindmq.client.admin.commands.command import Command, Printed

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient


async def _execute(admin: AdminClient, arguments: argparse.Namespace) -> AsyncGenerator[Printed]:
    for address in await addressed_brokers(admin, arguments):
        await admin.brokers.clean_unused_topic(address)
        yield Printed(
            [f"{address}: queues of unknown topics removed"], {"brokerAddr": address, "success": True}
        )


COMMAND: Final = Command(
    "cleanUnusedTopic",
    "Remove the queues of topics that a broker no longer has.",
    "-c DefaultCluster",
    add_broker_target,
    _execute,
)
