"""Topics: their lists, routes and statistics, and how to create, change and delete them."""

from __future__ import annotations

from typing import Final

from rewindmq.client.admin.deleted_topic import DeletedTopic, KeptOffsets
from rewindmq.client.admin.groups import broker_consumer_offsets
from rewindmq.client.admin.remote import AdminPart
from rewindmq.protocol.body.registration import TopicConfig, TopicConfigSerializeWrapper
from rewindmq.protocol.body.route import TopicRouteData
from rewindmq.protocol.body.stats import TopicStatsTable
from rewindmq.protocol.body.topic_list import TopicList
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.errors import ClientError, RewindMQError
from rewindmq.protocol.header.admin import (
    CreateTopicRequestHeader,
    DeleteTopicRequestHeader,
    GetTopicStatsInfoRequestHeader,
)
from rewindmq.protocol.header.namesrv import DeleteTopicFromNamesrvRequestHeader, PutKVConfigRequestHeader
from rewindmq.protocol.names import DEFAULT_TOPIC
from rewindmq.protocol.topic_attributes import format_attributes

_ORDER_NAMESPACE: Final = "ORDER_TOPIC_CONFIG"


class TopicAdmin(AdminPart):
    """Lists, describes, creates, changes and deletes topics."""

    async def fetch_all_topic_list(self) -> list[str]:
        """Return the names of all topics, sorted: GET_ALL_TOPIC_LIST_FROM_NAMESERVER (206)."""
        command = self._remote.command(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
        answer = await self._remote.ask_namesrv(command)
        return sorted((await self._remote.decode(answer, TopicList)).topic_list)

    async def create_and_update_topic_config(self, address: str, topic: TopicConfig) -> None:
        """Create the topic at one broker, or overwrite all its settings: UPDATE_AND_CREATE_TOPIC (17).

        Args:
            address: of the broker.
            topic: the settings. Its ``attributes`` (5.x) are changes: ``+name`` with a value sets an
                attribute, ``-name`` with "" removes one. Other attributes do not change.
        """
        header = CreateTopicRequestHeader(
            topic=topic.topic_name,
            # The header requires the field; brokers ignore it.
            default_topic=DEFAULT_TOPIC,
            read_queue_nums=topic.read_queue_nums,
            write_queue_nums=topic.write_queue_nums,
            perm=topic.perm,
            topic_filter_type=topic.topic_filter_type,
            topic_sys_flag=topic.topic_sys_flag,
            order=topic.order,
            attributes=format_attributes(topic.attributes) if topic.attributes else None,
        )
        await self._remote.ask_broker(
            address, self._remote.command(RequestCode.UPDATE_AND_CREATE_TOPIC, header)
        )

    async def create_or_update_order_conf(self, topic: str, order_conf: str) -> None:
        """Store an ordered topic's brokers and queue counts at every name server: PUT_KV_CONFIG (100).

        Args:
            order_conf: such as ``broker-a:4;broker-b:4``.
        """
        header = PutKVConfigRequestHeader(namespace=_ORDER_NAMESPACE, key=topic, value=order_conf)
        await self._remote.ask_every_namesrv(lambda: self._remote.command(RequestCode.PUT_KV_CONFIG, header))

    async def examine_topic_stats(self, topic: str) -> TopicStatsTable:
        """Return offsets and last store time of each queue of a topic: GET_TOPIC_STATS_INFO (202).

        Raises:
            ResponseError: TOPIC_NOT_EXIST (17).
            ClientError: no broker listed a queue.
        """
        merged = TopicStatsTable()
        for _, address in await self._remote.brokers_of(topic):
            merged.offset_table.update((await self.broker_topic_stats(address, topic)).offset_table)
        if not merged.offset_table:
            raise ClientError(f"no broker lists a queue of topic {topic!r}")
        return merged

    async def broker_topic_stats(self, address: str, topic: str) -> TopicStatsTable:
        """Return bounds and last store time of a topic's queues at a broker: GET_TOPIC_STATS_INFO (202)."""
        header = GetTopicStatsInfoRequestHeader(topic=topic)
        command = self._remote.command(RequestCode.GET_TOPIC_STATS_INFO, header)
        return await self._remote.ask_broker_for(address, command, TopicStatsTable)

    async def examine_topic_route_info(self, topic: str) -> TopicRouteData:
        """Return the brokers that have the topic, and their queue counts: GET_ROUTEINFO_BY_TOPIC (105).

        Raises:
            ResponseError: TOPIC_NOT_EXIST (17) if no broker registered the topic.
        """
        return await self._remote.route(topic)

    async def delete_topic(self, cluster_name: str, topic: str) -> DeletedTopic:
        """Delete a topic at a cluster's masters, then at every name server.

        Masters get DELETE_TOPIC_IN_BROKER (215), name servers DELETE_TOPIC_IN_NAMESRV (216). RocketMQ's tool
        also asks slaves, which refuse: a slave copies the topics of its master. Then GET_ALL_CONSUMER_OFFSET
        (43) tells which groups' offsets the masters keep.

        Returns:
            The masters, and what they keep: up to 4.9, groups skip messages of a new topic of that name.

        Raises:
            ClientError: the cluster does not exist.
        """
        info = await self._remote.cluster_info()
        names = info.cluster_addr_table.get(cluster_name)
        if not names:
            raise ClientError(f"the name server knows no cluster named {cluster_name!r}")
        brokers = [info.broker_addr_table[name].broker_addrs for name in sorted(names)]
        addresses = [addresses[0] for addresses in brokers if 0 in addresses]
        for address in addresses:
            header = DeleteTopicRequestHeader(topic)
            await self._remote.ask_broker(
                address, self._remote.command(RequestCode.DELETE_TOPIC_IN_BROKER, header)
            )
        in_namesrv = DeleteTopicFromNamesrvRequestHeader(topic, cluster_name)
        await self._remote.ask_every_namesrv(
            lambda: self._remote.command(RequestCode.DELETE_TOPIC_IN_NAMESRV, in_namesrv)
        )
        return await self._deleted(topic, addresses)

    async def broker_topics(self, address: str) -> dict[str, TopicConfig]:
        """Return every topic of a broker, by name: GET_ALL_TOPIC_CONFIG (21)."""
        command = self._remote.command(RequestCode.GET_ALL_TOPIC_CONFIG)
        answer = await self._remote.ask_broker_for(address, command, TopicConfigSerializeWrapper)
        return answer.topic_config_table

    async def _deleted(self, topic: str, addresses: list[str]) -> DeletedTopic:
        kept, unread = [], {}
        for address in addresses:
            try:
                body = await broker_consumer_offsets(self._remote, address)
            except RewindMQError as error:
                unread[address] = str(error)
                continue
            for key, queues in sorted(body.offset_table.items()):
                name, _, group = key.partition("@")
                offsets = {queue_id: offset for queue_id, offset in queues.items() if offset > 0}
                if name == topic and offsets:
                    kept.append(KeptOffsets(address, group, offsets))
        return DeletedTopic(topic, addresses, kept, unread)
