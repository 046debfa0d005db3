"""topicRoute: show a topic's brokers and queue counts."""

from __future__ import annotations

import argparse
import json
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, Final

from rewindmq.client.admin.commands.command import Command, Printed

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient
    from rewindmq.protocol.body.route import TopicRouteData

_RULE_WIDTH: Final = 158


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-t", "--topic", required=True, help="topic name")
    parser.add_argument("-l", "--list", action="store_true", help="print a table instead of JSON")


async def _execute(admin: AdminClient, arguments: argparse.Namespace) -> AsyncGenerator[Printed]:
    route = await admin.topics.examine_topic_route_info(arguments.topic.strip())
    fields = _fields(route)
    yield Printed(_table(route) if arguments.list else _pretty(fields, "").split("\n"), fields)


def _fields(route: TopicRouteData) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "brokerDatas": [
            {
                "brokerAddrs": dict(sorted(broker.broker_addrs.items())),
                "brokerName": broker.broker_name,
                "cluster": broker.cluster,
            }
            for broker in sorted(route.broker_datas, key=lambda broker: broker.broker_name)
        ],
        "filterServerTable": route.filter_server_table,
    }
    if route.order_topic_conf is not None:
        fields["orderTopicConf"] = route.order_topic_conf
    fields["queueDatas"] = [
        {
            "brokerName": queue.broker_name,
            "perm": queue.perm,
            "readQueueNums": queue.read_queue_nums,
            "topicSysFlag": queue.topic_sys_flag,
            "writeQueueNums": queue.write_queue_nums,
        }
        for queue in sorted(route.queue_datas, key=lambda queue: queue.broker_name)
    ]
    return fields


def _pretty(value: object, indent: str) -> str:
    """Format as fastjson does: with tabs; maps with numbers as keys on one line, without quotes."""
    inner = indent + "\t"
    if isinstance(value, dict) and value:
        if all(isinstance(key, int) for key in value):
            entries = ",".join(f"{key}:{_pretty(item, inner)}" for key, item in value.items())
            return f"{{{entries}\n{indent}}}"
        entries = f",\n{inner}".join(
            f"{json.dumps(key)}:{_pretty(item, inner)}" for key, item in value.items()
        )
        return f"{{\n{inner}{entries}\n{indent}}}"
    if isinstance(value, list) and value:
        entries = f",\n{inner}".join(_pretty(item, inner) for item in value)
        return f"[\n{inner}{entries}\n{indent}]"
    return json.dumps(value, ensure_ascii=False)


def _table(route: TopicRouteData) -> list[str]:
    queues = {queue.broker_name: queue for queue in route.queue_datas}
    lines = [_row("#ClusterName", "#BrokerName", "#BrokerAddrs", "#ReadQueue", "#WriteQueue", "#Perm")]
    read = write = 0
    for broker in sorted(route.broker_datas, key=lambda broker: broker.broker_name):
        queue = queues.get(broker.broker_name)
        if queue is None:
            continue
        read += queue.read_queue_nums
        write += queue.write_queue_nums
        addresses = ", ".join(f"{key}={address}" for key, address in sorted(broker.broker_addrs.items()))
        lines.append(
            _row(
                broker.cluster,
                broker.broker_name,
                f"{{{addresses}}}",
                queue.read_queue_nums,
                queue.write_queue_nums,
                queue.perm,
            )
        )
    lines.append("-" * _RULE_WIDTH)
    lines.append(_row("Total:", len(queues), "", read, write, ""))
    return lines


def _row(cluster: str, broker: object, addresses: str, read: object, write: object, perm: object) -> str:
    return f"{cluster:<45} {broker!s:<32} {addresses:<50} {read!s:<10} {write!s:<11} {perm!s:<5}"


COMMAND: Final = Command("topicRoute", "Show the route of a topic.", "-t TopicTest", _add_arguments, _execute)
