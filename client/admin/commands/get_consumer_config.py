"""getConsumerConfig: show a consumer group's settings at each broker that has them."""

from __future__ import annotations

import argparse
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, Final

from rewindmq.client.admin.commands.command import Command, Printed, java_bool
from rewindmq.protocol.errors import ClientError

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient
    from rewindmq.protocol.body.group import SubscriptionGroupConfig


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-g", "--groupName", required=True, help="consumer group")


def fields_of(group: SubscriptionGroupConfig) -> dict[str, Any]:
    """Return the settings by RocketMQ's field names."""
    import msgspec

    return dict(msgspec.to_builtins(group))


async def _execute(admin: AdminClient, arguments: argparse.Namespace) -> AsyncGenerator[Printed]:
    name = arguments.groupName.strip()
    info = await admin.brokers.examine_broker_cluster_info()
    has_any = False
    for broker_name, broker in sorted(info.broker_addr_table.items()):
        if not broker.broker_addrs:
            continue
        # The master, else a slave, which copies its master's groups (``BrokerData#selectBrokerAddr``).
        address = broker.broker_addrs[min(broker.broker_addrs)]
        group = (await admin.groups.subscription_groups(address)).get(name)
        if group is None:
            continue
        has_any = True
        rule = "=" * 28
        lines = [f"{rule}{broker.cluster}:{broker_name}{rule}"]
        fields = fields_of(group)
        for key, value in fields.items():
            shown = java_bool(value) if isinstance(value, bool) else value
            lines.append(f"{key:<40}=  {shown}")
        yield Printed(lines, {"cluster": broker.cluster, "brokerName": broker_name, **fields})
    if not has_any:
        raise ClientError(f"no broker has settings of a group named {name!r}")


COMMAND: Final = Command(
    "getConsumerConfig",
    "Show a consumer group's settings at each broker.",
    "-g GroupTest",
    _add_arguments,
    _execute,
)
