"""wipeWritePerm and addWritePerm: remove and restore a broker's write permission."""

from __future__ import annotations

import argparse
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TYPE_CHECKING, Final

from rewindmq.client.admin.commands.command import Command, Printed
from rewindmq.protocol.errors import RewindMQError

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-b", "--brokerName", required=True, metavar="NAME", help="broker name")


async def _execute_wipe(admin: AdminClient, arguments: argparse.Namespace) -> AsyncGenerator[Printed]:
    async for printed in _at_each_namesrv(admin, arguments, "wipe", admin.brokers.wipe_write_perm_of_broker):
        yield printed


async def _execute_add(admin: AdminClient, arguments: argparse.Namespace) -> AsyncGenerator[Printed]:
    async for printed in _at_each_namesrv(admin, arguments, "add", admin.brokers.add_write_perm_of_broker):
        yield printed


async def _at_each_namesrv(
    admin: AdminClient, arguments: argparse.Namespace, verb: str, change: Callable[[str, str], Awaitable[int]]
) -> AsyncGenerator[Printed]:
    """Change the permission at every name server, then raise the first failure."""
    broker = arguments.brokerName.strip()
    failure: RewindMQError | None = None
    for address in admin.namesrv_addresses:
        where = f"{verb} write perm of broker[{broker}] in name server[{address}]"
        data = {"brokerName": broker, "namesrvAddr": address}
        try:
            count = await change(address, broker)
        except RewindMQError as error:
            failure = failure or error
            yield Printed([f"{where} Failed"], {**data, "error": str(error)})
        else:
            yield Printed([f"{where} OK, {count}"], {**data, "topicCount": count})
    if failure is not None:
        raise failure


WIPE_COMMAND: Final = Command(
    "wipeWritePerm",
    "Remove the write permission of a broker's topics at every name server. Producers stop sending to it.",
    "-b broker-a",
    _add_arguments,
    _execute_wipe,
)
ADD_COMMAND: Final = Command(
    "addWritePerm",
    "Restore the write permission of a broker's topics at every name server.",
    "-b broker-a",
    _add_arguments,
    _execute_add,
)
