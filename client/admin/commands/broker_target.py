"""Options that name a command's brokers: one broker, or all masters of a cluster."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient


def add_broker_target(parser: argparse.ArgumentParser) -> None:
    """Define ``-b`` and ``-c``; the operator must give one of them."""
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("-b", "--brokerAddr", metavar="HOST:PORT", help="address of one broker")
    target.add_argument("-c", "--clusterName", metavar="NAME", help="all masters of this cluster")


async def addressed_brokers(admin: AdminClient, arguments: argparse.Namespace) -> list[str]:
    """Return the addresses of the brokers that the options name.

    Raises:
        ClientError: the cluster does not exist, or has no master.
    """
    if arguments.brokerAddr is not None:
        return [arguments.brokerAddr.strip()]
    return [address for _, address in await admin.brokers.master_addresses(arguments.clusterName.strip())]
