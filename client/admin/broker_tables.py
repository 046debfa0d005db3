"""Reads whole tables of one broker: topics, progress, producers and offsets, each with one request."""

from __future__ import annotations

from rewindmq.client.admin.remote import AdminBase, AdminRemote
from rewindmq.protocol.body.connection import ProducerInfo, ProducerTableInfo
from rewindmq.protocol.body.offset_table import ConsumerOffsetSerializeWrapper
from rewindmq.protocol.body.registration import TopicConfig, TopicConfigSerializeWrapper
from rewindmq.protocol.body.stats import (
    ConsumeStats,
    ConsumeStatsList,
    QueryConsumeTimeSpanBody,
    QueueTimeSpan,
)
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.header.admin import GetConsumeStatsInBrokerHeader, QueryConsumeTimeSpanRequestHeader


class BrokerTableAdmin(AdminBase):
    """Reads whole tables of one broker."""

    async def broker_topics(self, address: str) -> dict[str, TopicConfig]:
        """Return every topic of a broker, by name: GET_ALL_TOPIC_CONFIG (21)."""
        command = self._remote.command(RequestCode.GET_ALL_TOPIC_CONFIG)
        answer = await self._remote.ask_broker_for(address, command, TopicConfigSerializeWrapper)
        return answer.topic_config_table

    async def broker_consume_stats(self, address: str) -> dict[str, list[ConsumeStats]]:
        """Return each group's progress at a broker, one entry for each topic: GET_BROKER_CONSUME_STATS (317).

        Groups without offsets are listed, too. RewindMQ's brokers refuse with SYSTEM_ERROR (1) if the
        response would list more than 70,000 queues.
        """
        header = GetConsumeStatsInBrokerHeader(is_order=False)
        command = self._remote.command(RequestCode.GET_BROKER_CONSUME_STATS, header)
        answer = await self._remote.ask_broker_for(address, command, ConsumeStatsList)
        return {group: stats for entry in answer.consume_stats_list for group, stats in entry.items()}

    async def broker_producers(self, address: str) -> dict[str, list[ProducerInfo]]:
        """Return the connected producers of a broker, by group: GET_ALL_PRODUCER_INFO (328)."""
        command = self._remote.command(RequestCode.GET_ALL_PRODUCER_INFO)
        return (await self._remote.ask_broker_for(address, command, ProducerTableInfo)).data

    async def broker_consumer_offsets(self, address: str) -> ConsumerOffsetSerializeWrapper:
        """Return every stored offset of a broker: GET_ALL_CONSUMER_OFFSET (43)."""
        return await broker_consumer_offsets(self._remote, address)

    async def broker_consume_time_span(self, address: str, topic: str, group: str) -> list[QueueTimeSpan]:
        """Return the store times of a topic's queues at a broker, and for how long the group's next message
        of each has been stored: QUERY_CONSUME_TIME_SPAN (303).
        """
        header = QueryConsumeTimeSpanRequestHeader(topic=topic, group=group)
        command = self._remote.command(RequestCode.QUERY_CONSUME_TIME_SPAN, header)
        answer = await self._remote.ask_broker_for(address, command, QueryConsumeTimeSpanBody)
        return answer.consume_time_span_set


async def broker_consumer_offsets(remote: AdminRemote, address: str) -> ConsumerOffsetSerializeWrapper:
    """Send GET_ALL_CONSUMER_OFFSET (43) to one broker."""
    command = remote.command(RequestCode.GET_ALL_CONSUMER_OFFSET)
    return await remote.ask_broker_for(address, command, ConsumerOffsetSerializeWrapper)
