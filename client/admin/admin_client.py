"""AdminClient: what mqadmin does, as an object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

from rewindmq.client.admin import (
    broker_config,
    cleaning,
    clone,
    consumers,
    fenced,
    group_config,
    group_resets,
    groups,
    message_trace,
    messages,
    queue_reset,
    reset,
    topics,
    write_perm,
)
from rewindmq.client.admin.clone import CloneResult
from rewindmq.client.admin.group_resets import GroupReset
from rewindmq.client.admin.queue_reset import QueueReset
from rewindmq.client.admin.remote import AdminRemote
from rewindmq.client.admin.reset import ResetResult, RollbackStats
from rewindmq.client.admin.timestamp import MAX_OFFSET_TIMESTAMP, parse_reset_timestamp
from rewindmq.client.client_config import make_config
from rewindmq.client.msg_trace.records import DEFAULT_TRACE_TOPIC
from rewindmq.protocol.body.cluster import ClusterInfo
from rewindmq.protocol.body.connection import ConsumerConnection
from rewindmq.protocol.body.fenced_commit import FencedCommitList
from rewindmq.protocol.body.group import SubscriptionGroupConfig
from rewindmq.protocol.body.registration import TopicConfig
from rewindmq.protocol.body.route import TopicRouteData
from rewindmq.protocol.body.running_info import ConsumeMessageDirectlyResult, ConsumerRunningInfo
from rewindmq.protocol.body.stats import ConsumeStats, TopicStatsTable
from rewindmq.protocol.command import SerializeType
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message_queue import MessageQueue
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.runtime import Runtime, system_runtime
from rewindmq.protocol.reset_mode import ResetMode


class AdminClient:
    """Examines and changes a cluster (RocketMQ 4.9.4 ``DefaultMQAdminExt``).

    Every method may raise ``ResponseError`` (a server refused; code and remark are its own) and
    ``RemotingError`` (no connection, or no answer within 5 s).

    Args:
        namesrv_addr: ``host:port``, several separated by ``;``; without it the environment's NAMESRV_ADDR.
        runtime: clock, network and chance; the system's unless given.
        profile: the release whose reading of ``now`` applies.
        wire: the header codec to speak; None finds out what the peer does.

    Raises:
        ClientError: no name server is named anywhere.
    """

    def __init__(
        self,
        namesrv_addr: str | None = None,
        runtime: Runtime | None = None,
        *,
        profile: Profile = Profile.V49,
        wire: SerializeType | None = None,
    ) -> None:
        self.profile = profile
        self.runtime = runtime if runtime is not None else system_runtime()
        self._remote = AdminRemote(make_config(namesrv_addr, profile=profile), self.runtime, wire)

    async def start(self) -> None:
        """Ready to ask; connections are made when first needed."""

    async def shutdown(self) -> None:
        """Close every connection; pending calls fail."""
        await self._remote.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.shutdown()

    # Cluster and topics.

    async def examine_topic_route_info(self, topic: str) -> TopicRouteData:
        """Which brokers hold the topic, with how many queues; ``ResponseError`` 17 when none does."""
        return await self._remote.route(topic)

    async def fetch_all_topic_list(self) -> list[str]:
        """The names of all topics, sorted."""
        return await topics.fetch_all_topic_list(self._remote)

    async def examine_broker_cluster_info(self) -> ClusterInfo:
        """All brokers with their addresses, and which cluster each belongs to."""
        return await topics.examine_broker_cluster_info(self._remote)

    async def fetch_broker_runtime_stats(self, address: str) -> dict[str, str]:
        """The figures a broker reports about itself (docs/spec/protocol.md 5.9)."""
        return await topics.fetch_broker_runtime_stats(self._remote, address)

    @property
    def namesrv_addresses(self) -> tuple[str, ...]:
        """``host:port`` of each name server."""
        return tuple(self._remote.namesrv_addresses)

    async def wipe_write_perm_of_broker(self, namesrv_address: str, broker_name: str) -> int:
        """Keep producers away from a broker, at one name server; gives the number of its topics."""
        return await write_perm.wipe_write_perm_of_broker(self._remote, namesrv_address, broker_name)

    async def add_write_perm_of_broker(self, namesrv_address: str, broker_name: str) -> int:
        """Let producers come back to a broker, at one name server; gives the number of its topics."""
        return await write_perm.add_write_perm_of_broker(self._remote, namesrv_address, broker_name)

    async def create_and_update_topic_config(self, address: str, topic: TopicConfig) -> None:
        """Create the topic at one broker, or overwrite all its settings."""
        await topics.create_and_update_topic_config(self._remote, address, topic)

    async def delete_topic(self, cluster_name: str, topic: str) -> list[str]:
        """Forget a topic at a cluster's masters and at the name servers; gives the brokers' addresses."""
        return await cleaning.delete_topic(self._remote, cluster_name, topic)

    async def clean_unused_topic(self, address: str) -> None:
        """Remove the queues of topics that a broker does not have any more."""
        await cleaning.clean_unused_topic(self._remote, address)

    async def clean_expired_consume_queue(self, address: str) -> None:
        """Remove the queues of a broker that have no message left; they start over at offset 0."""
        await cleaning.clean_expired_consume_queue(self._remote, address)

    async def delete_expired_commit_log(self, address: str) -> None:
        """Have a broker delete what is older than ``fileReservedTime`` without waiting for the hour."""
        await cleaning.delete_expired_commit_log(self._remote, address)

    async def create_or_update_order_conf(self, topic: str, order_conf: str) -> None:
        """Tell every name server which brokers and queues an ordered topic has."""
        await topics.create_or_update_order_conf(self._remote, topic, order_conf)

    async def master_addresses(self, cluster_name: str) -> list[tuple[str, str]]:
        """Name and address of every master of a cluster; ``ClientError`` when there is none."""
        return await topics.master_addresses(self._remote, cluster_name)

    async def examine_topic_stats(self, topic: str) -> TopicStatsTable:
        """Start, end and last store time of every queue of the topic."""
        return await topics.examine_topic_stats(self._remote, topic)

    async def get_broker_config(self, address: str) -> dict[str, str]:
        """A broker's configuration as it counts now, by RocketMQ's keys."""
        return await broker_config.get_broker_config(self._remote, address)

    async def update_broker_config(self, address: str, values: Mapping[str, str]) -> None:
        """Change keys until the broker restarts; ``ResponseError`` 1 for any that cannot be changed."""
        await broker_config.update_broker_config(self._remote, address, values)

    # Groups.

    async def examine_consume_stats(self, group: str, topic: str | None = None) -> ConsumeStats:
        """The group's stored offset and the queue's end, per queue; 206 when it has none at all."""
        return await groups.examine_consume_stats(self._remote, group, topic)

    async def examine_consumer_connection_info(
        self, group: str, address: str | None = None
    ) -> ConsumerConnection:
        """The group's members and subscriptions; 206 when none is connected."""
        return await groups.examine_consumer_connection_info(self._remote, group, address)

    async def get_consumer_running_info(
        self, group: str, client_id: str, *, stacks: bool = False
    ) -> ConsumerRunningInfo:
        """What one member is doing now, and where its tasks are; 1 when it is not connected, 207 when it does
        not answer."""
        return await consumers.consumer_running_info(self._remote, group, client_id, stacks=stacks)

    async def get_consumer_status(
        self, topic: str, group: str, client: str | None = None
    ) -> dict[str, dict[MessageQueue, int]]:
        """The offsets that the members have in memory, by client id and queue; see ``consumers``."""
        return await consumers.consumer_status(self._remote, topic, group, client)

    async def consume_message_directly(
        self, group: str, client_id: str, message_id: str
    ) -> ConsumeMessageDirectlyResult:
        """Have one member's listener take one message now; see ``consumers``."""
        return await consumers.consume_message_directly(self._remote, group, client_id, message_id)

    async def clone_group_offset(self, source: str, destination: str, topic: str | None) -> CloneResult:
        """Give a group the stored offsets of another, in one topic or in all; see ``clone``."""
        return await clone.clone_group_offset(self._remote, source, destination, topic)

    async def create_and_update_subscription_group_config(
        self, address: str, group: SubscriptionGroupConfig
    ) -> None:
        """Create the group at one broker, or overwrite all its settings."""
        await group_config.create_and_update_subscription_group(self._remote, address, group)

    async def delete_subscription_group(
        self, address: str, group: str, *, remove_offset: bool = False
    ) -> None:
        """Forget the group's settings at one broker, and its offsets if asked to."""
        await group_config.delete_subscription_group(
            self._remote, address, group, remove_offset=remove_offset
        )

    async def subscription_groups(self, address: str) -> dict[str, SubscriptionGroupConfig]:
        """The settings of every group at one broker, by name."""
        return await group_config.subscription_groups(self._remote, address)

    async def query_topic_consume_by_who(self, topic: str) -> list[str]:
        """The groups that consume a topic, sorted."""
        return await groups.query_topic_consume_by_who(self._remote, topic)

    # Reset.

    def parse_timestamp(self, text: str) -> int:
        """Read a reset's time as the commands do; ``ClientError`` when it is none."""
        return parse_reset_timestamp(text, self.profile, self.runtime.clock.now_ms())

    async def reset_offset_by_timestamp(
        self,
        topic: str,
        group: str,
        timestamp: int,
        force: bool = True,
        is_cpp: bool = False,
        mode: ResetMode | None = None,
    ) -> ResetResult:
        """Have every broker of the topic reset the group (222), in its own mode unless one is named.

        See ``reset``; ``ClientError`` when a broker does not say that it used the mode asked for.
        """
        return await reset.reset_offset_by_timestamp(
            self._remote, topic, group, timestamp, force, is_cpp, mode
        )

    async def reset_offset_of_queue(
        self,
        address: str,
        topic: str,
        group: str,
        queue_id: int,
        *,
        timestamp: int = MAX_OFFSET_TIMESTAMP,
        offset: int | None = None,
        force: bool = True,
        mode: ResetMode | None = None,
    ) -> ResetResult:
        """Reset the group in one queue of one broker of ours, to an offset or time; see ``reset``."""
        return await reset.reset_offset_of_queue(
            self._remote,
            address,
            topic,
            group,
            queue_id,
            timestamp=timestamp,
            offset=offset,
            force=force,
            mode=mode,
        )

    async def reset_queue_as_5x(
        self,
        address: str,
        topic: str,
        group: str,
        queue_id: int,
        timestamp: int,
        offset: int | None = None,
    ) -> QueueReset:
        """The same the way RocketMQ 5's tool does it, which applies no offset 0; see ``queue_reset``."""
        return await queue_reset.reset_queue_as_5x(
            self._remote, address, topic, group, queue_id, timestamp, offset
        )

    async def reset_offset_by_timestamp_old(
        self, topic: str, group: str, timestamp: int, force: bool = True
    ) -> list[RollbackStats]:
        """Write the offsets of a group that has no running consumer; see ``reset``."""
        return await reset.reset_offset_by_timestamp_old(self._remote, topic, group, timestamp, force)

    async def reset_or_write(
        self,
        topic: str,
        group: str,
        timestamp: int,
        force: bool = True,
        *,
        is_cpp: bool = False,
        mode: ResetMode | None = None,
    ) -> GroupReset:
        """What the reset commands do: reset the group, or write its offsets when no member is connected."""
        return await group_resets.reset_or_write(
            self._remote, topic, group, timestamp, force, is_cpp=is_cpp, mode=mode
        )

    async def reset_groups(
        self,
        topic: str,
        groups: Sequence[str],
        timestamp: int,
        force: bool = True,
        mode: ResetMode | None = None,
    ) -> list[GroupReset]:
        """The same for several groups, with an outcome for each; see ``group_resets``."""
        return await group_resets.reset_groups(self._remote, topic, groups, timestamp, force, mode)

    async def fenced_commits(
        self, group: str | None = None, topic: str | None = None, address: str | None = None
    ) -> dict[str, FencedCommitList]:
        """The commits that fenced resets have overtaken, by broker name; at one address, by that."""
        if address is not None:
            return {address: await fenced.fenced_commits_at(self._remote, address, group, topic)}
        return await fenced.fenced_commits(self._remote, group, topic)

    # Queues and messages.

    async def search_offset(self, queue: MessageQueue, timestamp: int) -> int:
        """The queue's offset at ``timestamp`` ms."""
        return await self._remote.api.search_offset(await self._remote.address_of(queue), queue, timestamp)

    async def max_offset(self, queue: MessageQueue) -> int:
        """One past the queue's last message."""
        return await self._remote.api.max_offset(await self._remote.address_of(queue), queue)

    async def min_offset(self, queue: MessageQueue) -> int:
        """The queue's first message still kept."""
        return await self._remote.api.min_offset(await self._remote.address_of(queue), queue)

    async def view_message(self, message_id: str) -> MessageExt:
        """The message an offset id names."""
        return await messages.view_message(self._remote, message_id)

    async def query_message(
        self,
        topic: str,
        key: str,
        max_count: int = messages.MAX_COUNT,
        begin: int = 0,
        end: int = messages.END_OF_TIME,
    ) -> list[MessageExt]:
        """Messages with one of their KEYS equal to ``key``, stored in [begin, end] ms, the oldest first.

        At most ``max_count``, and 64, of each broker: the newest. ``ResponseError`` 208 when there is none.
        """
        return await messages.query_message(
            self._remote, topic, key, max_count, begin, end, is_unique_key=False
        )

    async def message_at(self, queue: MessageQueue, offset: int) -> MessageExt:
        """The message at one offset of a queue; ``ResponseError`` 208 when there is none."""
        return await messages.message_at(self._remote, queue, offset)

    async def query_message_trace(
        self, message_id: str, topic: str = DEFAULT_TRACE_TOPIC
    ) -> list[message_trace.TraceLine]:
        """Who sent a message and who consumed it, as far as they were traced; see ``message_trace``."""
        return await message_trace.query_message_trace(self._remote, message_id, topic)

    async def query_message_by_unique_key(self, topic: str, message_id: str) -> list[MessageExt]:
        """Messages with the id a producer gave, the oldest first; ``ResponseError`` 208 when there is none.

        There are several where a producer sent again, or the message was consumed again.
        """
        return await messages.query_message(
            self._remote,
            topic,
            message_id,
            messages.MAX_COUNT,
            0,
            messages.END_OF_TIME,
            is_unique_key=True,
        )
