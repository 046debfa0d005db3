"""deleteSubGroup: delete a consumer group; with ``-c`` also its retry and dead-letter topics."""

from __future__ import annotations

import argparse
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Final

from rewindmq.client.admin.commands.broker_target import add_broker_target, addressed_brokers
from rewindmq.client.admin.commands.command import Command, Printed, true_or_false

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_broker_target(parser)
    parser.add_argument("-g", "--groupName", required=True, help="consumer group")
    parser.add_argument(
        "-r",
        "--removeOffset",
        type=true_or_false,
        default=False,
        metavar="true|false",
        help="delete the group's offsets, too (default: false)",
    )


async def _execute(admin: AdminClient, arguments: argparse.Namespace) -> AsyncGenerator[Printed]:
    from rewindmq.protocol.names import dlq_topic, retry_topic

    group = arguments.groupName.strip()
    for address in await addressed_brokers(admin, arguments):
        await admin.groups.delete_subscription_group(address, group, remove_offset=arguments.removeOffset)
        yield Printed(
            [f"delete subscription group [{group}] from broker [{address}] success."],
            {"brokerAddr": address, "deleted": True},
        )
    if arguments.clusterName is not None:
        cluster = arguments.clusterName.strip()
        topics = retry_topic(group), dlq_topic(group)
        deleted = [await admin.topics.delete_topic(cluster, topic) for topic in topics]
        yield Printed(
            [
                f"delete topics of group [{group}] from cluster [{cluster}] success.",
                *(line for topic in deleted for line in topic.notes()),
            ],
            {"clusterName": cluster, "deletedTopics": [retry_topic(group), dlq_topic(group)]},
        )


COMMAND: Final = Command(
    "deleteSubGroup",
    "Delete a consumer group.",
    "-c DefaultCluster -g GroupTest -r true",
    _add_arguments,
    _execute,
)
