"""Topics and the cluster that holds them."""

from __future__ import annotations

from typing import Final

from rewindmq.client.admin.remote import AdminRemote
from rewindmq.client.core.route import MASTER_ID
from rewindmq.protocol.body.cluster import ClusterInfo
from rewindmq.protocol.body.kv import KVTable
from rewindmq.protocol.body.registration import TopicConfig
from rewindmq.protocol.body.stats import TopicStatsTable
from rewindmq.protocol.body.topic_list import TopicList
from rewindmq.protocol.body_codec import decode_body
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.header.admin import CreateTopicRequestHeader, GetTopicStatsInfoRequestHeader
from rewindmq.protocol.header.namesrv import PutKVConfigRequestHeader
from rewindmq.protocol.names import DEFAULT_TOPIC
from rewindmq.protocol.topic_attributes import format_attributes

_ORDER_NAMESPACE: Final = "ORDER_TOPIC_CONFIG"


async def fetch_all_topic_list(remote: AdminRemote) -> list[str]:
    """Code 206: the topics of every broker, sorted."""
    command = remote.command(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
    return sorted(decode_body(await remote.ask_namesrv(command), TopicList).topic_list)


async def examine_broker_cluster_info(remote: AdminRemote) -> ClusterInfo:
    """Code 106."""
    command = remote.command(RequestCode.GET_BROKER_CLUSTER_INFO)
    return decode_body(await remote.ask_namesrv(command), ClusterInfo)


async def fetch_broker_runtime_stats(remote: AdminRemote, address: str) -> dict[str, str]:
    """Code 28."""
    command = remote.command(RequestCode.GET_BROKER_RUNTIME_INFO)
    return decode_body(await remote.ask_broker(address, command), KVTable).table


async def create_and_update_topic_config(remote: AdminRemote, address: str, topic: TopicConfig) -> None:
    """Code 17: every field is sent, so whatever the topic was before is overwritten.

    ``attributes`` are changes, ``+name`` to a value and ``-name`` to "" (5.x); others stay what they are.
    """
    header = CreateTopicRequestHeader(
        topic=topic.topic_name,
        # Brokers read past it.
        default_topic=DEFAULT_TOPIC,
        read_queue_nums=topic.read_queue_nums,
        write_queue_nums=topic.write_queue_nums,
        perm=topic.perm,
        topic_filter_type=topic.topic_filter_type,
        topic_sys_flag=topic.topic_sys_flag,
        order=topic.order,
        attributes=format_attributes(topic.attributes) if topic.attributes else None,
    )
    await remote.ask_broker(address, remote.command(RequestCode.UPDATE_AND_CREATE_TOPIC, header))


async def create_or_update_order_conf(remote: AdminRemote, topic: str, order_conf: str) -> None:
    """Code 100: which brokers and how many queues an ordered topic has (``broker-a:4;broker-b:4``)."""
    header = PutKVConfigRequestHeader(namespace=_ORDER_NAMESPACE, key=topic, value=order_conf)
    await remote.ask_every_namesrv(lambda: remote.command(RequestCode.PUT_KV_CONFIG, header))


async def master_addresses(remote: AdminRemote, cluster_name: str) -> list[tuple[str, str]]:
    """Name and address of every master of a cluster, sorted by name.

    Raises:
        ClientError: no such cluster, or none of its brokers is a master.
    """
    info = await examine_broker_cluster_info(remote)
    names = info.cluster_addr_table.get(cluster_name, ())
    pairs = []
    for name in sorted(names):
        broker = info.broker_addr_table.get(name)
        if broker is not None and MASTER_ID in broker.broker_addrs:
            pairs.append((name, broker.broker_addrs[MASTER_ID]))
    if not pairs:
        raise ClientError(f"the name server knows no master of a cluster named {cluster_name!r}")
    return pairs


async def examine_topic_stats(remote: AdminRemote, topic: str) -> TopicStatsTable:
    """Code 202 at every broker of the topic, in one table.

    Raises:
        ResponseError: 17, no such topic.
        ClientError: no broker listed a queue.
    """
    header = GetTopicStatsInfoRequestHeader(topic=topic)
    merged = TopicStatsTable()
    for _, address in await remote.brokers_of(topic):
        command = remote.command(RequestCode.GET_TOPIC_STATS_INFO, header)
        table = decode_body(await remote.ask_broker(address, command), TopicStatsTable)
        merged.offset_table.update(table.offset_table)
    if not merged.offset_table:
        raise ClientError(f"no broker lists a queue of topic {topic!r}")
    return merged
