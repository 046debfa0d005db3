"""deleteExpiredCommitLog: delete files older than fileReservedTime now."""

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
        await admin.brokers.delete_expired_commit_log(address)
        yield Printed(
            [f"{address}: expired files will be deleted within 10 s"],
            {"brokerAddr": address, "success": True},
        )


COMMAND: Final = Command(
    "deleteExpiredCommitLog",
    "Delete files older than fileReservedTime now.",
    "-c DefaultCluster",
    add_broker_target,
    _execute,
)
