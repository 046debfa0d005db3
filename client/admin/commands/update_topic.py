"""updateTopic: create a topic, or overwrite its settings."""

from __future__ import annotations

import argparse
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, Final

from rewindmq.client.admin.commands.command import Command, Printed, java_bool, true_or_false
from rewindmq.protocol.message.sysflag import Perm, TopicSysFlag
from rewindmq.protocol.remoting.process.options import positive_int

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient
    from rewindmq.protocol.body.registration import TopicConfig


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("-b", "--brokerAddr", metavar="HOST:PORT", help="address of one broker")
    target.add_argument("-c", "--clusterName", metavar="NAME", help="all masters of this cluster")
    parser.add_argument("-t", "--topic", required=True, help="topic name")
    parser.add_argument(
        "-r", "--readQueueNums", type=positive_int, default=8, metavar="N", help="read queues (default: 8)"
    )
    parser.add_argument(
        "-w", "--writeQueueNums", type=positive_int, default=8, metavar="N", help="write queues (default: 8)"
    )
    parser.add_argument(
        "-p",
        "--perm",
        type=int,
        choices=(2, 4, 6),
        default=6,
        help="2: write, 4: read, 6: both (default: 6)",
    )
    for flag, name, text in (
        ("-o", "--order", "an ordered topic"),
        ("-u", "--unit", "a unit topic"),
        ("-s", "--hasUnitSub", "a topic with unit subscriptions"),
    ):
        parser.add_argument(
            flag,
            name,
            type=true_or_false,
            default=False,
            metavar="true|false",
            help=f"{text} (default: false)",
        )
    parser.add_argument(
        "-a",
        "--attributes",
        default="",
        metavar="TEXT",
        help="changes of attributes: +name=value sets one, -name removes one, commas separate several;"
        " +cleanup.policy=COMPACTION keeps only the newest message of each key",
    )


async def _execute(admin: AdminClient, arguments: argparse.Namespace) -> AsyncGenerator[Printed]:
    from rewindmq.protocol.body.registration import TopicConfig
    from rewindmq.protocol.topic_attributes import parse_attributes

    topic = TopicConfig(
        topic_name=arguments.topic.strip(),
        read_queue_nums=arguments.readQueueNums,
        write_queue_nums=arguments.writeQueueNums,
        perm=arguments.perm,
        topic_sys_flag=TopicSysFlag.UNIT * arguments.unit | TopicSysFlag.UNIT_SUB * arguments.hasUnitSub,
        order=arguments.order,
        attributes=parse_attributes(arguments.attributes.strip()) or None,
    )
    if arguments.brokerAddr is not None:
        address = arguments.brokerAddr.strip()
        brokers = [(await _name_of(admin, address) if topic.order else "", address)]
        kind = "broker"
    else:
        brokers = await admin.brokers.master_addresses(arguments.clusterName.strip())
        kind = "cluster"
    for _, address in brokers:
        await admin.topics.create_and_update_topic_config(address, topic)
        yield Printed([f"create topic to {address} success."], {"brokerAddr": address, "created": True})
    if topic.order:
        order_conf = ";".join(f"{name}:{topic.write_queue_nums}" for name, _ in brokers)
        await admin.topics.create_or_update_order_conf(topic.topic_name, order_conf)
        yield Printed(
            [f"set {kind} orderConf. isOrder=true, orderConf=[{order_conf}]"], {"orderConf": order_conf}
        )
    yield Printed([_describe(topic)], _fields(topic))


async def _name_of(admin: AdminClient, address: str) -> str:
    """Return the name of the broker at an address.

    Raises:
        ClientError: the name server knows no broker at this address.
    """
    from rewindmq.protocol.errors import ClientError

    info = await admin.brokers.examine_broker_cluster_info()
    for name, broker in sorted(info.broker_addr_table.items()):
        if address in broker.broker_addrs.values():
            return name
    raise ClientError(f"the name server knows no broker at {address}")


def _fields(topic: TopicConfig) -> dict[str, Any]:
    fields = {
        "topicName": topic.topic_name,
        "readQueueNums": topic.read_queue_nums,
        "writeQueueNums": topic.write_queue_nums,
        "perm": topic.perm,
        "topicFilterType": str(topic.topic_filter_type),
        "topicSysFlag": topic.topic_sys_flag,
        "order": topic.order,
    }
    return fields if topic.attributes is None else {**fields, "attributes": topic.attributes}


def _describe(topic: TopicConfig) -> str:
    """``TopicConfig#toString``."""
    from rewindmq.protocol.topic_attributes import format_attributes

    flags = ((Perm.READ, "R"), (Perm.WRITE, "W"), (Perm.INHERIT, "X"))
    perm = "".join(letter if topic.perm & flag else "-" for flag, letter in flags)
    fields = {**_fields(topic), "perm": perm, "order": java_bool(topic.order)}
    if topic.attributes is not None:
        fields["attributes"] = f"{{{format_attributes(topic.attributes)}}}"
    return f"TopicConfig [{', '.join(f'{name}={value}' for name, value in fields.items())}]"


COMMAND: Final = Command(
    "updateTopic",
    "Create a topic, or overwrite all its settings.",
    "-c DefaultCluster -t TopicTest -r 4 -w 4",
    _add_arguments,
    _execute,
)
