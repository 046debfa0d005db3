"""Consumer groups: their offsets, connected consumers and settings."""

from __future__ import annotations

from typing import Final

from rewindmq.client.admin.remote import TIMEOUT, AdminBase, AdminRemote, not_online
from rewindmq.protocol.body.connection import ConsumerConnection
from rewindmq.protocol.body.group import GroupList, SubscriptionGroupConfig, SubscriptionGroupWrapper
from rewindmq.protocol.body.rewind import RewindList
from rewindmq.protocol.body.stats import ConsumeStats
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.errors import ResponseError
from rewindmq.protocol.header.admin import (
    DeleteSubscriptionGroupRequestHeader,
    GetConsumerConnectionListRequestHeader,
    GetConsumeStatsRequestHeader,
    ListRewindsRequestHeader,
    QueryTopicConsumeByWhoRequestHeader,
)
from rewindmq.protocol.header.offset import QueryConsumerOffsetResponseHeader
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import retry_topic

# DefaultMQAdminExtImpl#examineConsumeStats triples its timeout for the heaviest of its calls.
_STATS_TIMEOUT: Final = 3 * TIMEOUT


class GroupAdmin(AdminBase):
    """Offsets, connected consumers and settings of consumer groups."""

    async def examine_consume_stats(self, group: str, topic: str | None = None) -> ConsumeStats:
        """Return stored offset and maximum offset of each queue that the group consumes.

        Every broker that serves the group's retry topic gets GET_CONSUME_STATS (208).

        Raises:
            ResponseError: TOPIC_NOT_EXIST (17) if the group never connected; CONSUMER_NOT_ONLINE (206) if no
                broker has an offset of it.
        """
        merged = ConsumeStats()
        for _, address in await self._remote.brokers_of(retry_topic(group)):
            stats = await broker_consume_stats(self._remote, address, group, topic)
            merged.offset_table.update(stats.offset_table)
            merged.consume_tps += stats.consume_tps
        if not merged.offset_table:
            raise not_online(
                f"the offset table of group {group} is empty: it may not have consumed any message"
            )
        return merged

    async def broker_group_stats(self, address: str, group: str, topic: str | None = None) -> ConsumeStats:
        """Return the group's progress at one broker: GET_CONSUME_STATS (208); None means every topic."""
        return await broker_consume_stats(self._remote, address, group, topic)

    async def broker_rewinds(self, address: str, group: str, topic: str) -> RewindList:
        """Return the group's offsets and latest rewinds at one broker: RewindMQ's LIST_REWINDS (190003).

        Raises:
            ResponseError: REQUEST_CODE_NOT_SUPPORTED (3) from RocketMQ's brokers; TOPIC_NOT_EXIST (17).
        """
        command = self._remote.command(RequestCode.LIST_REWINDS, ListRewindsRequestHeader(group, topic))
        return await self._remote.ask_broker_for(address, command, RewindList)

    async def topic_consume_stats(self, group: str, topic: str, *, has_offsets: bool = False) -> ConsumeStats:
        """Return stored and maximum offsets of the group in one topic, also if the group never connected.

        Every broker of the topic gets GET_CONSUME_STATS (208). A queue without a stored offset shows 0.

        Args:
            has_offsets: leave out brokers at which no queue of the topic has a stored offset. They then get
                the request without the topic, and answer for all topics of the group.

        Raises:
            ResponseError: TOPIC_NOT_EXIST (17) if the topic has no route.
        """
        merged = ConsumeStats()
        for _, address in await self._remote.brokers_of(topic):
            stats = await broker_consume_stats(self._remote, address, group, None if has_offsets else topic)
            merged.offset_table.update(
                {queue: entry for queue, entry in stats.offset_table.items() if queue.topic == topic}
            )
            merged.consume_tps += stats.consume_tps
        return merged

    async def stored_offset(self, group: str, queue: MessageQueue) -> int | None:
        """Return the group's stored offset in a queue: QUERY_CONSUMER_OFFSET (14); None if it has none.

        Brokers also answer 0 for a group without offsets, if the queue still has its first message in memory.

        Raises:
            ClientError: the topic's route does not name the queue's broker.
            ResponseError: the broker refused.
        """
        record = await self.stored_record(group, queue)
        return None if record is None else record.offset

    async def stored_record(
        self, group: str, queue: MessageQueue
    ) -> QueryConsumerOffsetResponseHeader | None:
        """Return the stored offset with the queue's epoch, see ``stored_offset``."""
        address = await self._remote.address_of(queue)
        try:
            return await self._remote.api.consumer_offset(address, group, queue)
        except ResponseError as error:
            if error.code == ResponseCode.QUERY_NOT_FOUND:
                return None
            raise

    async def examine_consumer_connection_info(
        self, group: str, address: str | None = None
    ) -> ConsumerConnection:
        """Return the consumers of a group and their subscriptions: GET_CONSUMER_CONNECTION_LIST (203).

        mqadmin asks one broker chosen at random. A group that is connected only to some brokers therefore
        looks offline now and then (docs/spec/admin.md 3.2). This method asks every broker in turn until one
        knows the group.

        Args:
            group: the consumer group.
            address: ask only the broker at this address.

        Raises:
            ResponseError: TOPIC_NOT_EXIST (17) if the group never connected; CONSUMER_NOT_ONLINE (206) if no
                consumer is connected.
        """
        if address is not None:
            addresses = [address]
        else:
            addresses = [where for _, where in await self._remote.brokers_of(retry_topic(group))]
        header = GetConsumerConnectionListRequestHeader(consumer_group=group)
        refusal = not_online(f"no consumer of group {group} is connected")
        for where in addresses:
            command = self._remote.command(RequestCode.GET_CONSUMER_CONNECTION_LIST, header)
            try:
                connection = await self._remote.ask_broker_for(where, command, ConsumerConnection)
            except ResponseError as error:
                if error.code != ResponseCode.CONSUMER_NOT_ONLINE:
                    raise
                refusal = error
                continue
            if connection.connection_set:
                return connection
        raise refusal

    async def query_topic_consume_by_who(self, topic: str) -> list[str]:
        """Return the groups that consume a topic, sorted: QUERY_TOPIC_CONSUME_BY_WHO (300)."""
        groups: set[str] = set()
        for _, address in await self._remote.brokers_of(topic):
            groups.update(await self.broker_topic_groups(address, topic))
        return sorted(groups)

    async def broker_topic_groups(self, address: str, topic: str) -> list[str]:
        """Return the groups that consume a topic at one broker: QUERY_TOPIC_CONSUME_BY_WHO (300)."""
        header = QueryTopicConsumeByWhoRequestHeader(topic=topic)
        command = self._remote.command(RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, header)
        return sorted((await self._remote.ask_broker_for(address, command, GroupList)).group_list)

    async def create_and_update_subscription_group_config(
        self, address: str, group: SubscriptionGroupConfig
    ) -> None:
        """Create the group at one broker, or overwrite all its settings.

        The request is UPDATE_AND_CREATE_SUBSCRIPTIONGROUP (200).
        """
        command = self._remote.api.command(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, group)
        await self._remote.ask_broker(address, command)

    async def delete_subscription_group(
        self, address: str, group: str, *, remove_offset: bool = False
    ) -> None:
        """Delete the group's settings at one broker: DELETE_SUBSCRIPTIONGROUP (207).

        Args:
            remove_offset: delete the group's stored offsets, too.
        """
        # 4.9.4 reads the field removeOffset, 5.x cleanOffset.
        header = DeleteSubscriptionGroupRequestHeader(group, remove_offset, remove_offset)
        await self._remote.ask_broker(
            address, self._remote.command(RequestCode.DELETE_SUBSCRIPTIONGROUP, header)
        )

    async def subscription_groups(self, address: str) -> dict[str, SubscriptionGroupConfig]:
        """Return every group's settings at one broker, by name: GET_ALL_SUBSCRIPTIONGROUP_CONFIG (201)."""
        command = self._remote.command(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
        answer = await self._remote.ask_broker_for(address, command, SubscriptionGroupWrapper)
        return answer.subscription_group_table


async def broker_consume_stats(
    remote: AdminRemote, address: str, group: str, topic: str | None = None
) -> ConsumeStats:
    """Send GET_CONSUME_STATS (208) to one broker; None for ``topic`` asks about all topics of the group."""
    header = GetConsumeStatsRequestHeader(consumer_group=group, topic=topic)
    command = remote.command(RequestCode.GET_CONSUME_STATS, header)
    return await remote.ask_broker_for(address, command, ConsumeStats, _STATS_TIMEOUT)
