"""Consumer groups: their offsets, consumers and settings."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from rewindmq.client.admin.remote import TIMEOUT, AdminPart, AdminRemote, not_online
from rewindmq.protocol.body.assignment import MessageRequestMode
from rewindmq.protocol.body.connection import ConsumerConnection
from rewindmq.protocol.body.group import GroupList, SubscriptionGroupConfig, SubscriptionGroupWrapper
from rewindmq.protocol.body.offset_table import ConsumerOffsetSerializeWrapper, GetConsumerStatusBody
from rewindmq.protocol.body.running_info import ConsumeMessageDirectlyResult, ConsumerRunningInfo
from rewindmq.protocol.body.stats import (
    ConsumeStats,
    ConsumeStatsList,
    QueryConsumeTimeSpanBody,
    QueueTimeSpan,
)
from rewindmq.protocol.body.topic_list import TopicList
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.errors import ResponseError
from rewindmq.protocol.header.admin import (
    DeleteSubscriptionGroupRequestHeader,
    GetConsumerConnectionListRequestHeader,
    GetConsumeStatsInBrokerHeader,
    GetConsumeStatsRequestHeader,
    QueryConsumeTimeSpanRequestHeader,
    QueryTopicConsumeByWhoRequestHeader,
)
from rewindmq.protocol.header.client import GetConsumerRunningInfoRequestHeader
from rewindmq.protocol.header.message import ConsumeMessageDirectlyResultRequestHeader
from rewindmq.protocol.header.offset import QueryConsumerOffsetResponseHeader
from rewindmq.protocol.header.reset import GetConsumerStatusRequestHeader
from rewindmq.protocol.message.message import format_host
from rewindmq.protocol.message.message_id import parse_offset_message_id
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.names import RETRY_GROUP_TOPIC_PREFIX, SYSTEM_GROUP_PREFIX

# DefaultMQAdminExtImpl triples its timeout for consume statistics, and where a broker waits for a client.
_LONG_TIMEOUT: Final = 3 * TIMEOUT
BROADCASTING_NOTE: Final = (
    "the consumers are broadcasting: each keeps its own offsets, so the group has no lag, and offsets that"
    " brokers still have of it do not count"
)
# Addresses that a sentence names.
_MAX_SHOWN: Final = 5


class GroupAdmin(AdminPart):
    """Offsets, connected consumers and settings of consumer groups."""

    async def consumer_groups(self) -> list[str]:
        """Return the groups that have a retry topic or a stored offset, sorted, without RocketMQ's own.

        A group gets its retry topic when its first consumer connects. Every broker gets
        GET_ALL_CONSUMER_OFFSET (43), because a group may have offsets and no retry topic: offsets of
        another group were copied to it, or it was reset.
        """
        command = self._remote.command(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
        answer = await self._remote.ask_namesrv(command)
        topics = (await self._remote.decode(answer, TopicList)).topic_list
        found: set[str] = set()
        for _, address in await self._remote.brokers():
            found |= groups_with_offsets(await broker_consumer_offsets(self._remote, address))
        return sorted(group_names(topics, found))

    async def examine_consume_stats(self, group: str, topic: str | None = None) -> ConsumeStats:
        """Return stored offset and maximum offset of each queue that the group consumes.

        Every broker gets GET_CONSUME_STATS (208). mqadmin asks the brokers of the group's retry topic, and so
        does not find a group that has offsets and never connected.

        Args:
            topic: only this topic. At brokers to which the group connected, a queue without a stored offset
                shows 0.

        Raises:
            ResponseError: TOPIC_NOT_EXIST (17) if no broker knows the group; CONSUMER_NOT_ONLINE (206) if no
                broker has an offset of it.
        """
        connected = await self._remote.retry_brokers(group)
        merged = ConsumeStats()
        for name, address in await self._remote.brokers():
            asked = topic if name in connected else None
            stats = await broker_consume_stats(self._remote, address, group, asked)
            table = stats.offset_table
            if topic != asked:
                table = {queue: entry for queue, entry in table.items() if queue.topic == topic}
            merged.offset_table.update(table)
            merged.consume_tps += stats.consume_tps
        if not merged.offset_table:
            await require_group(self._remote, group)
            raise not_online(
                f"the offset table of group {group} is empty: it may not have consumed any message"
            )
        return merged

    async def broker_group_stats(self, address: str, group: str, topic: str | None = None) -> ConsumeStats:
        """Return the group's progress at one broker: GET_CONSUME_STATS (208); None means every topic."""
        return await broker_consume_stats(self._remote, address, group, topic)

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
            ResponseError: TOPIC_NOT_EXIST (17) if no broker knows the group; CONSUMER_NOT_ONLINE (206) if no
                consumer is connected.
        """
        if address is not None:
            addresses = [address]
        else:
            addresses = await addresses_of_group(self._remote, group)
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

    async def set_message_request_mode(
        self, address: str, topic: str, group: str, mode: MessageRequestMode, share_queue_num: int = 0
    ) -> None:
        """Set at one broker whether a group pulls or pops a topic: SET_MESSAGE_REQUEST_MODE (401).

        Args:
            share_queue_num: with POP, so many further consumers share a consumer's queues; 0 or less: all.

        Raises:
            ResponseError: NO_PERMISSION (16) for a retry topic; TOPIC_NOT_EXIST (17);
                SUBSCRIPTION_GROUP_NOT_EXIST (26); REQUEST_CODE_NOT_SUPPORTED (3) from brokers before 5.0.
        """
        await self._remote.api.set_request_mode(address, topic, group, mode, share_queue_num)

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
        return await _subscription_groups(self._remote, address)

    async def broker_consume_stats(self, address: str) -> dict[str, list[ConsumeStats]]:
        """Return each group's progress at a broker, one entry for each topic: GET_BROKER_CONSUME_STATS (317).

        Groups without offsets are listed, too. RewindMQ's brokers refuse with SYSTEM_ERROR (1) if the
        response would list more than 70,000 queues.
        """
        header = GetConsumeStatsInBrokerHeader(is_order=False)
        command = self._remote.command(RequestCode.GET_BROKER_CONSUME_STATS, header)
        answer = await self._remote.ask_broker_for(address, command, ConsumeStatsList)
        return {group: stats for entry in answer.consume_stats_list for group, stats in entry.items()}

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

    async def get_consumer_running_info(
        self, group: str, client_id: str, *, stacks: bool = False, address: str | None = None
    ) -> ConsumerRunningInfo:
        """Return the running info of one consumer: GET_CONSUMER_RUNNING_INFO (307).

        mqadmin asks only the first broker of the group's route, which may not know the client. This method
        asks every broker in turn until one knows it.

        Args:
            stacks: include the stacks of the client's tasks and threads.
            address: ask only the broker at this address.

        Raises:
            ResponseError: TOPIC_NOT_EXIST (17) if no broker knows the group; SYSTEM_ERROR (1) if no broker
                knows the client, or the client refused; CONSUME_MSG_TIMEOUT (207) if it did not answer.
        """
        header = GetConsumerRunningInfoRequestHeader(group, client_id, stacks)
        refusal = not_online(f"no broker knows client {client_id} of group {group}")
        if address is not None:
            addresses = [address]
        else:
            addresses = await addresses_of_group(self._remote, group)
        for where in addresses:
            command = self._remote.command(RequestCode.GET_CONSUMER_RUNNING_INFO, header)
            try:
                return await self._remote.ask_broker_for(where, command, ConsumerRunningInfo, _LONG_TIMEOUT)
            except ResponseError as error:
                if error.code == ResponseCode.CONSUME_MSG_TIMEOUT:
                    raise
                refusal = error
        raise refusal

    async def get_consumer_status(
        self, topic: str, group: str, client: str | None = None
    ) -> dict[str, dict[MessageQueue, int]]:
        """Return the offsets that a group's consumers have in memory.

        The broker gets INVOKE_BROKER_TO_GET_CONSUMER_STATUS (223). Every consumer reports its queues of all
        brokers. The first broker that knows a consumer is therefore enough.

        Args:
            client: ask only the consumer with this client id; RewindMQ's brokers also accept its address.

        Returns:
            Client id to queue to offset in memory. Consumers that did not answer within 5 s are missing.

        Raises:
            ResponseError: TOPIC_NOT_EXIST (17); SYSTEM_ERROR (1) if no consumer is connected, or the release
                of a consumer is too old; CONSUME_MSG_TIMEOUT (207) if no consumer answered.
        """
        header = GetConsumerStatusRequestHeader(topic, group, client)
        refusal = not_online(f"no consumer of group {group} is connected")
        for _, address in await self._remote.brokers_of(topic):
            command = self._remote.command(RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, header)
            try:
                answer = await self._remote.ask_broker(address, command, _LONG_TIMEOUT)
            except ResponseError as error:
                if error.code == ResponseCode.CONSUME_MSG_TIMEOUT:
                    raise
                refusal = error
                continue
            table = (await self._remote.decode(answer, GetConsumerStatusBody)).consumer_table
            return {name: dict(sorted(table[name].items())) for name in sorted(table)}
        raise refusal

    async def consume_message_directly(
        self, group: str, client_id: str, message_id: str
    ) -> ConsumeMessageDirectlyResult:
        """Pass one stored message to one consumer's listener: CONSUME_MESSAGE_DIRECTLY (309).

        The broker that stores the message sends it to the client.

        Args:
            message_id: the message's offset id.

        Raises:
            ResponseError: SYSTEM_ERROR (1) if the text is not an offset id, the message does not exist, or
                the client is not connected to that broker; CONSUME_MSG_TIMEOUT (207) if the listener took
                more than 10 s. It may still be running then.
        """
        host, _ = parse_offset_message_id(message_id)
        header = ConsumeMessageDirectlyResultRequestHeader(group, client_id, message_id)
        command = self._remote.command(RequestCode.CONSUME_MESSAGE_DIRECTLY, header)
        answer = await self._remote.ask_broker(format_host(host), command, _LONG_TIMEOUT)
        return decode_body(answer, ConsumeMessageDirectlyResult)


async def group_connection(remote: AdminRemote, group: str) -> ConsumerConnection | None:
    """Return the group's consumers; None if none is connected, or no broker knows the group."""
    try:
        return await GroupAdmin(remote).examine_consumer_connection_info(group)
    except ResponseError as error:
        if error.code in (ResponseCode.CONSUMER_NOT_ONLINE, ResponseCode.TOPIC_NOT_EXIST):
            return None
        raise


async def addresses_of_group(remote: AdminRemote, group: str) -> list[str]:
    """Return one address of each broker to which the group has connected; none if it never did.

    Raises:
        ResponseError: TOPIC_NOT_EXIST (17) if no broker knows the group.
    """
    connected = await remote.retry_brokers(group)
    if not connected:
        await require_group(remote, group)
    return [*connected.values()]


async def require_group(remote: AdminRemote, group: str) -> None:
    """Return if a broker knows the group.

    Raises:
        ResponseError: TOPIC_NOT_EXIST (17), mqadmin's code for an unknown group: the group has no retry
            topic, and no broker has an offset or the settings of it.
    """
    if await remote.retry_brokers(group):
        return
    for _, address in await remote.brokers():
        if (await broker_consume_stats(remote, address, group)).offset_table:
            return
        if group in await _subscription_groups(remote, address):
            return
    raise ResponseError(
        ResponseCode.TOPIC_NOT_EXIST,
        f"there is no group {group!r}: no consumer of it has connected, and no broker has an offset or"
        " settings of it; check the name, rewindmq lag lists the groups",
    )


async def _subscription_groups(remote: AdminRemote, address: str) -> dict[str, SubscriptionGroupConfig]:
    command = remote.command(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
    answer = await remote.ask_broker_for(address, command, SubscriptionGroupWrapper)
    return answer.subscription_group_table


def group_names(topics: Iterable[str], with_offsets: Collection[str]) -> set[str]:
    """Return the groups that have a retry topic among these topics, and those with offsets.

    The retry topics of a group that pops are ``%RETRY%group_topic`` or ``%RETRY%group+topic``. mqadmin shows
    the former as groups.
    """
    prefix = RETRY_GROUP_TOPIC_PREFIX
    all_topics = set(topics)
    retried = {topic.removeprefix(prefix) for topic in all_topics if topic.startswith(prefix)}
    groups = {*with_offsets, *retried}
    names = set(with_offsets)
    for name in retried:
        group, between, _ = name.partition("+")
        if between:
            names.add(group)
        elif name in with_offsets or not _is_of_pop(name, groups, all_topics):
            names.add(name)
    return names


def _is_of_pop(name: str, groups: Collection[str], topics: Collection[str]) -> bool:
    """Return whether a name is a known group and a known topic with ``_`` between them."""
    return any(
        name[:place] in groups and name[place + 1 :] in topics
        for place, character in enumerate(name)
        if character == "_"
    )


def groups_with_offsets(offsets: ConsumerOffsetSerializeWrapper) -> set[str]:
    """Return the groups with a stored offset at a broker, without RocketMQ's own."""
    groups = {key.partition("@")[2] for key, stored in offsets.offset_table.items() if stored}
    return {group for group in groups if group and not group.startswith(SYSTEM_GROUP_PREFIX)}


async def broker_consume_stats(
    remote: AdminRemote, address: str, group: str, topic: str | None = None
) -> ConsumeStats:
    """Send GET_CONSUME_STATS (208) to one broker; None for ``topic`` asks about all topics of the group."""
    header = GetConsumeStatsRequestHeader(consumer_group=group, topic=topic)
    command = remote.command(RequestCode.GET_CONSUME_STATS, header)
    return await remote.ask_broker_for(address, command, ConsumeStats, _LONG_TIMEOUT)


async def broker_consumer_offsets(remote: AdminRemote, address: str) -> ConsumerOffsetSerializeWrapper:
    """Send GET_ALL_CONSUMER_OFFSET (43) to one broker."""
    command = remote.command(RequestCode.GET_ALL_CONSUMER_OFFSET)
    return await remote.ask_broker_for(address, command, ConsumerOffsetSerializeWrapper)
