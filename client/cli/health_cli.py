"""``rewindmq health``: whether a name server knows brokers and each of them answers."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Final

from rewindmq.client.cli.admin_work import run_with_admin
from rewindmq.protocol.remoting.process.options import positive_int

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient
    from rewindmq.protocol.remoting.runtime import Runtime

EPILOG: Final = """\
examples:
  rewindmq health                               the name server of NAMESRV_ADDR, and one broker or more
  rewindmq health -n rewindmq:9876 --brokers 2  two brokers at least

Exit codes: 0 healthy, 1 not (one line on stderr says why), 2 wrong usage, 130 interrupted.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options of ``health``."""
    parser.add_argument(
        "-n", "--namesrv", metavar="ADDR", help="host:port[;host:port] (default: NAMESRV_ADDR)"
    )
    parser.add_argument(
        "--brokers",
        type=positive_int,
        default=1,
        metavar="N",
        help="least number of brokers that must be registered, without slaves (default: 1)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Ask all servers, and return the exit code.

    Raises:
        RewindMQError: a server did not answer, or brokers are missing.
    """
    return run_with_admin(arguments.namesrv, partial(_check, wanted=arguments.brokers))


async def _check(admin: AdminClient, runtime: Runtime, wanted: int) -> None:
    from rewindmq.protocol.errors import ClientError

    brokers = (await admin.brokers.examine_broker_cluster_info()).broker_addr_table
    if len(brokers) < wanted:
        names = ", ".join(sorted(brokers)) or "none"
        raise ClientError(f"{len(brokers)} of {wanted} brokers are registered: {names}")
    for broker in brokers.values():
        for address in broker.broker_addrs.values():
            await admin.brokers.fetch_broker_runtime_stats(address)
    print(f"healthy: {', '.join(sorted(brokers))}")
