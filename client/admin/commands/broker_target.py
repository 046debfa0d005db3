"""The options by which a command is pointed at one broker or at the masters of a cluster."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient


def add_broker_target(parser: argparse.ArgumentParser) -> None:
    """Define ``-b`` and ``-c``, of which one has to be given."""
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("-b", "--brokerAddr", metavar="HOST:PORT", help="at this broker")
    target.add_argument("-c", "--clusterName", metavar="NAME", help="at every master of this cluster")


async def addressed_brokers(admin: AdminClient, arguments: argparse.Namespace) -> list[str]:
    """The addresses of the brokers meant; ClientError when the cluster has no master."""
    if arguments.brokerAddr is not None:
        return [arguments.brokerAddr.strip()]
    return [address for _, address in await admin.master_addresses(arguments.clusterName.strip())]
