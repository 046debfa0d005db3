"""Removing topics, and what retention is waiting for."""

from __future__ import annotations

from rewindmq.client.admin.remote import AdminRemote
from rewindmq.client.admin.topics import examine_broker_cluster_info
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.header.admin import DeleteTopicRequestHeader
from rewindmq.protocol.header.namesrv import DeleteTopicFromNamesrvRequestHeader


async def delete_topic(remote: AdminRemote, cluster_name: str, topic: str) -> list[str]:
    """Code 215 at every master of a cluster, then 216 at every name server.

    RocketMQ's tool asks slaves, too, which refuse; they copy the topics of their masters.

    Returns:
        The brokers' addresses.

    Raises:
        ClientError: no such cluster.
    """
    info = await examine_broker_cluster_info(remote)
    names = info.cluster_addr_table.get(cluster_name)
    if not names:
        raise ClientError(f"the name server knows no cluster named {cluster_name!r}")
    brokers = [info.broker_addr_table[name].broker_addrs for name in sorted(names)]
    addresses = [addresses[0] for addresses in brokers if 0 in addresses]
    for address in addresses:
        header = DeleteTopicRequestHeader(topic)
        await remote.ask_broker(address, remote.command(RequestCode.DELETE_TOPIC_IN_BROKER, header))
    in_namesrv = DeleteTopicFromNamesrvRequestHeader(topic, cluster_name)
    await remote.ask_every_namesrv(lambda: remote.command(RequestCode.DELETE_TOPIC_IN_NAMESRV, in_namesrv))
    return addresses


async def clean_expired_consume_queue(remote: AdminRemote, address: str) -> None:
    """Code 306: remove the queues of a broker that have no message left."""
    await remote.ask_broker(address, remote.command(RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE))


async def delete_expired_commit_log(remote: AdminRemote, address: str) -> None:
    """Code 329: have a broker delete what is older than ``fileReservedTime`` without waiting for the hour."""
    await remote.ask_broker(address, remote.command(RequestCode.DELETE_EXPIRED_COMMITLOG))


async def clean_unused_topic(remote: AdminRemote, address: str) -> None:
    """Code 316: remove the queues of topics that a broker does not have any more."""
    await remote.ask_broker(address, remote.command(RequestCode.CLEAN_UNUSED_TOPIC))
