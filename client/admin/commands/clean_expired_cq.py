"""cleanExpiredCQ: remove the ConsumeQueues that have no message left."""

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
        await admin.brokers.clean_expired_consume_queue(address)
        yield Printed(
            [f"{address}: queues without messages removed"], {"brokerAddr": address, "success": True}
        )


COMMAND: Final = Command(
    "cleanExpiredCQ",
    "Remove queues that have no message left.",
    "-c DefaultCluster",
    add_broker_target,
    _execute,
)
