"""updateSubGroup: create a consumer group, or overwrite its settings."""

from __future__ import annotations

import argparse
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Final

from rewindmq.client.admin.commands.broker_target import add_broker_target, addressed_brokers
from rewindmq.client.admin.commands.command import Command, Printed, java_bool, true_or_false

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_broker_target(parser)
    parser.add_argument("-g", "--groupName", required=True, help="consumer group")
    for flag, name, default, text in (
        ("-s", "--consumeEnable", True, "the group may consume"),
        ("-m", "--consumeFromMinEnable", False, "the group may start at the first message"),
        ("-d", "--consumeBroadcastEnable", False, "the group may consume in broadcasting mode"),
        ("-a", "--notifyConsumerIdsChanged", True, "notify consumers when others join or leave the group"),
    ):
        parser.add_argument(
            flag,
            name,
            type=true_or_false,
            default=default,
            metavar="true|false",
            help=f"{text} (default: {str(default).lower()})",
        )
    for flag, name, number, text in (
        ("-q", "--retryQueueNums", 1, "queues of the retry topic; 0: failed messages are not stored"),
        ("-r", "--retryMaxTimes", 16, "retries of a message before the dead-letter topic"),
        ("-i", "--brokerId", 0, "broker id to consume from"),
        ("-w", "--whichBrokerWhenConsumeSlowly", 1, "broker id to consume from when far behind"),
    ):
        parser.add_argument(
            flag, name, type=int, default=number, metavar="N", help=f"{text} (default: {number})"
        )


async def _execute(admin: AdminClient, arguments: argparse.Namespace) -> AsyncGenerator[Printed]:
    from rewindmq.client.admin.commands.get_consumer_config import fields_of
    from rewindmq.protocol.body.group import SubscriptionGroupConfig

    group = SubscriptionGroupConfig(
        arguments.groupName.strip(),
        arguments.consumeEnable,
        arguments.consumeFromMinEnable,
        arguments.consumeBroadcastEnable,
        arguments.retryQueueNums,
        arguments.retryMaxTimes,
        arguments.brokerId,
        arguments.whichBrokerWhenConsumeSlowly,
        arguments.notifyConsumerIdsChanged,
    )
    for address in await addressed_brokers(admin, arguments):
        await admin.groups.create_and_update_subscription_group_config(address, group)
        yield Printed(
            [f"create subscription group to {address} success."], {"brokerAddr": address, "created": True}
        )
    fields = fields_of(group)
    described = ", ".join(
        f"{name}={java_bool(value) if isinstance(value, bool) else value}" for name, value in fields.items()
    )
    yield Printed([f"SubscriptionGroupConfig [{described}]"], fields)


COMMAND: Final = Command(
    "updateSubGroup",
    "Create a consumer group, or overwrite its settings.",
    "-c DefaultCluster -g GroupTest -r 3",
    _add_arguments,
    _execute,
)
