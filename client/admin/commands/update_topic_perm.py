"""updateTopicPerm: change a topic's permissions, and keep its queue counts, system flag and attributes."""

from __future__ import annotations

import argparse
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Final

from rewindmq.client.admin.commands.broker_target import add_broker_target
from rewindmq.client.admin.commands.command import Command, Printed

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_broker_target(parser)
    parser.add_argument("-t", "--topic", required=True, help="topic name")
    parser.add_argument(
        "-p", "--perm", type=int, choices=(2, 4, 6), required=True, help="2: write, 4: read, 6: both"
    )


async def _execute(admin: AdminClient, arguments: argparse.Namespace) -> AsyncGenerator[Printed]:
    from rewindmq.client.core.route import MASTER_ID
    from rewindmq.protocol.body.registration import TopicConfig
    from rewindmq.protocol.errors import ClientError

    topic, perm = arguments.topic.strip(), arguments.perm
    route = await admin.topics.examine_topic_route_info(topic)
    queues = {queue.broker_name: queue for queue in route.queue_datas}
    masters = {
        broker.broker_addrs[MASTER_ID]: broker.broker_name
        for broker in route.broker_datas
        if MASTER_ID in broker.broker_addrs and broker.broker_name in queues
    }
    if arguments.brokerAddr is None:
        in_cluster = {
            address for _, address in await admin.brokers.master_addresses(arguments.clusterName.strip())
        }
        wanted = [address for address in masters if address in in_cluster]
    else:
        wanted = [arguments.brokerAddr.strip()]
    if not wanted or not masters.keys() >= set(wanted):
        raise ClientError(f"topic {topic!r} has no master broker at that address or in that cluster")
    for address in sorted(wanted):
        queue = queues[masters[address]]
        if queue.perm == perm:
            yield Printed(["new perm equals to the old one!"], {"brokerAddr": address, "perm": perm})
            continue
        config = TopicConfig(
            topic_name=topic,
            read_queue_nums=queue.read_queue_nums,
            write_queue_nums=queue.write_queue_nums,
            perm=perm,
            topic_sys_flag=queue.topic_sys_flag,
        )
        await admin.topics.create_and_update_topic_config(address, config)
        yield Printed(
            [f"update topic perm from {queue.perm} to {perm} in {address} success."],
            {"brokerAddr": address, "perm": perm, "before": queue.perm},
        )


COMMAND: Final = Command(
    "updateTopicPerm",
    "Change the permissions of a topic: 2 write, 4 read, 6 both.",
    "-c DefaultCluster -t TopicTest -p 4",
    _add_arguments,
    _execute,
)
