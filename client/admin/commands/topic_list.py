"""topicList: list all topics, with ``-c`` also their clusters and consumer groups."""

from __future__ import annotations

import argparse
import logging
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Final

from rewindmq.client.admin.commands.command import Command, Printed
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.names import DLQ_GROUP_TOPIC_PREFIX, RETRY_GROUP_TOPIC_PREFIX

if TYPE_CHECKING:
    from rewindmq.client.admin.admin_client import AdminClient
    from rewindmq.protocol.body.cluster import ClusterInfo

_log = logging.getLogger(__name__)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-c", "--clusterModel", action="store_true", help="show each topic's cluster and consumer groups"
    )


async def _execute(admin: AdminClient, arguments: argparse.Namespace) -> AsyncGenerator[Printed]:
    if not arguments.clusterModel:
        topics = await admin.topics.fetch_all_topic_list()
        yield Printed(topics, topics)
        return
    # In mqadmin, too, this header is narrower than its rows.
    lines = [f"{'#Cluster Name':<20}  {'#Topic':<48}  {'#Consumer Group':<48}"]
    data = []
    info = await admin.brokers.examine_broker_cluster_info()
    for topic in await admin.topics.fetch_all_topic_list():
        if topic.startswith((RETRY_GROUP_TOPIC_PREFIX, DLQ_GROUP_TOPIC_PREFIX)):
            continue
        cluster, groups = await _describe(admin, info, topic)
        lines += [f"{cluster[:20]:<20}  {topic[:64]:<64}  {group[:64]:<64}" for group in groups or [""]]
        data.append({"cluster": cluster, "topic": topic, "consumerGroups": groups})
    yield Printed(lines, data)


async def _describe(admin: AdminClient, info: ClusterInfo, topic: str) -> tuple[str, list[str]]:
    """Return a topic's cluster and groups; after an error, values not yet fetched are empty (mqadmin)."""
    cluster = ""
    try:
        route = await admin.topics.examine_topic_route_info(topic)
        names = {broker.broker_name for broker in route.broker_datas}
        for candidate, brokers in sorted(info.cluster_addr_table.items()):
            if names & set(brokers):
                cluster = candidate
                break
        return cluster, await admin.groups.query_topic_consume_by_who(topic)
    except RewindMQError as error:
        _log.warning("topic %s: %s", topic, error)
        return cluster, []


COMMAND: Final = Command("topicList", "List all topics.", "-c", _add_arguments, _execute)
