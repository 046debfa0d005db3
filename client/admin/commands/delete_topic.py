"""deleteTopic: delete a topic at a cluster's masters and at the name servers."""

from __future__ import annotations

import argparse
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Final

from rewindmq.client.admin.commands.command import Command, Printed

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-c", "--clusterName", metavar="NAME", required=True, help="all masters of this cluster"
    )
    parser.add_argument("-t", "--topic", required=True, help="topic name")


async def _execute(admin: AdminClient, arguments: argparse.Namespace) -> AsyncGenerator[Printed]:
    cluster, topic = arguments.clusterName.strip(), arguments.topic.strip()
    deleted = await admin.topics.delete_topic(cluster, topic)
    yield Printed(
        [f"delete topic [{topic}] from cluster [{cluster}] success.", *deleted.notes()],
        {
            "topic": topic,
            "clusterName": cluster,
            "brokerAddrs": deleted.broker_addrs,
            "keptOffsets": [
                {"brokerAddr": kept.broker_addr, "group": kept.group, "offsets": kept.offsets}
                for kept in deleted.kept
            ],
        },
    )


COMMAND: Final = Command(
    "deleteTopic",
    "Delete a topic at brokers and name servers.",
    "-c DefaultCluster -t TopicTest",
    _add_arguments,
    _execute,
)
