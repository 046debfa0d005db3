"""setConsumeMode: set whether a group pulls or pops a topic."""

from __future__ import annotations

import argparse
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Final

from rewindmq.client.admin.commands.broker_target import add_broker_target, addressed_brokers
from rewindmq.client.admin.commands.command import Command, Printed

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_broker_target(parser)
    parser.add_argument("-t", "--topicName", required=True, metavar="TOPIC", help="topic name")
    parser.add_argument("-g", "--groupName", required=True, metavar="GROUP", help="consumer group")
    parser.add_argument(
        "-m", "--mode", required=True, choices=("PULL", "POP"), help="how the group reads the topic"
    )
    parser.add_argument(
        "-q",
        "--popShareQueueNum",
        type=int,
        default=0,
        metavar="N",
        help="with POP: N further consumers share a consumer's queues (default: 0, all of them)",
    )


async def _execute(admin: AdminClient, arguments: argparse.Namespace) -> AsyncGenerator[Printed]:
    from rewindmq.protocol.body.assignment import MessageRequestMode

    topic, group, share = arguments.topicName.strip(), arguments.groupName.strip(), arguments.popShareQueueNum
    mode = MessageRequestMode(arguments.mode)
    for address in await addressed_brokers(admin, arguments):
        await admin.groups.set_message_request_mode(address, topic, group, mode, share)
        yield Printed([f"set consume mode to {address} success."], {"brokerAddr": address, "set": True})
    yield Printed(
        [f"topic[{topic}] group[{group}] consume mode[{mode}] popShareQueueNum[{share}]"],
        {"topic": topic, "group": group, "mode": str(mode), "popShareQueueNum": share},
    )


COMMAND: Final = Command(
    "setConsumeMode",
    "Set whether a group pulls or pops a topic.",
    "-c DefaultCluster -t TopicTest -g GroupTest -m POP",
    _add_arguments,
    _execute,
)
