"""Consumer groups: how far they are, and who is in them."""

from __future__ import annotations

from typing import Final

from rewindmq.client.admin.remote import TIMEOUT, AdminRemote, not_online
from rewindmq.protocol.body.connection import ConsumerConnection
from rewindmq.protocol.body.group import GroupList
from rewindmq.protocol.body.stats import ConsumeStats
from rewindmq.protocol.body_codec import decode_body
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.errors import ResponseError
from rewindmq.protocol.header.admin import (
    GetConsumerConnectionListRequestHeader,
    GetConsumeStatsRequestHeader,
    QueryTopicConsumeByWhoRequestHeader,
)
from rewindmq.protocol.names import retry_topic

# DefaultMQAdminExtImpl#examineConsumeStats triples its bound for the heaviest of its calls.
_STATS_TIMEOUT: Final = 3 * TIMEOUT


async def broker_consume_stats(
    remote: AdminRemote, address: str, group: str, topic: str | None = None
) -> ConsumeStats:
    """Code 208 at one broker; in all the group's topics unless one is named."""
    header = GetConsumeStatsRequestHeader(consumer_group=group, topic=topic)
    command = remote.command(RequestCode.GET_CONSUME_STATS, header)
    return decode_body(await remote.ask_broker(address, command, _STATS_TIMEOUT), ConsumeStats)


async def examine_consume_stats(remote: AdminRemote, group: str, topic: str | None = None) -> ConsumeStats:
    """Code 208 at every broker that serves the group's retry topic, added up.

    Raises:
        ResponseError: 17, the group never connected; 206, it has no offset anywhere.
    """
    merged = ConsumeStats()
    for _, address in await remote.brokers_of(retry_topic(group)):
        stats = await broker_consume_stats(remote, address, group, topic)
        merged.offset_table.update(stats.offset_table)
        merged.consume_tps += stats.consume_tps
    if not merged.offset_table:
        raise not_online(f"the offset table of group {group} is empty: it may not have consumed any message")
    return merged


async def examine_consumer_connection_info(
    remote: AdminRemote, group: str, address: str | None = None
) -> ConsumerConnection:
    """Code 203: the members of a group and what they subscribe to.

    mqadmin asks one broker chosen at random, so that a group connected to some brokers only looks offline
    now and then (docs/spec/admin.md 3.2). Here every broker is asked in turn until one knows the group.

    Args:
        group: the consumer group.
        address: ask this broker only.

    Raises:
        ResponseError: 17, the group never connected; 206, no member is connected.
    """
    if address is not None:
        addresses = [address]
    else:
        addresses = [where for _, where in await remote.brokers_of(retry_topic(group))]
    header = GetConsumerConnectionListRequestHeader(consumer_group=group)
    refusal = not_online(f"no member of group {group} is connected")
    for where in addresses:
        command = remote.command(RequestCode.GET_CONSUMER_CONNECTION_LIST, header)
        try:
            connection = decode_body(await remote.ask_broker(where, command), ConsumerConnection)
        except ResponseError as error:
            if error.code != ResponseCode.CONSUMER_NOT_ONLINE:
                raise
            refusal = error
            continue
        if connection.connection_set:
            return connection
    raise refusal


async def query_topic_consume_by_who(remote: AdminRemote, topic: str) -> list[str]:
    """Code 300 at the topic's brokers: the groups that consume it, sorted."""
    header = QueryTopicConsumeByWhoRequestHeader(topic=topic)
    groups: set[str] = set()
    for _, address in await remote.brokers_of(topic):
        command = remote.command(RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, header)
        groups.update(decode_body(await remote.ask_broker(address, command), GroupList).group_list)
    return sorted(groups)
