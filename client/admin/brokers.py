"""Brokers: their runtime statistics, configuration, producers, write permission and clean-up."""

from __future__ import annotations

from collections.abc import Mapping

from rewindmq.client.admin.remote import AdminPart
from rewindmq.client.core.route import MASTER_ID
from rewindmq.protocol.body.cluster import ClusterInfo
from rewindmq.protocol.body.connection import ProducerInfo, ProducerTableInfo
from rewindmq.protocol.body.kv import KVTable
from rewindmq.protocol.body.stats import BrokerStatsData
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.config.property_file import format_properties_file, parse_properties_file
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.header.admin import (
    ViewBrokerStatsDataRequestHeader,
)
from rewindmq.protocol.header.namesrv import (
    AddWritePermOfBrokerRequestHeader,
    AddWritePermOfBrokerResponseHeader,
    WipeWritePermOfBrokerRequestHeader,
    WipeWritePermOfBrokerResponseHeader,
)


class BrokerAdmin(AdminPart):
    """Describes, configures and cleans brokers."""

    async def examine_broker_cluster_info(self) -> ClusterInfo:
        """Return all brokers with their addresses and clusters: GET_BROKER_CLUSTER_INFO (106)."""
        return await self._remote.cluster_info()

    async def master_addresses(self, cluster_name: str) -> list[tuple[str, str]]:
        """Return name and address of every master of a cluster, sorted by name.

        Raises:
            ClientError: the cluster does not exist, or has no master.
        """
        info = await self._remote.cluster_info()
        names = info.cluster_addr_table.get(cluster_name, ())
        pairs = []
        for name in sorted(names):
            broker = info.broker_addr_table.get(name)
            if broker is not None and MASTER_ID in broker.broker_addrs:
                pairs.append((name, broker.broker_addrs[MASTER_ID]))
        if not pairs:
            raise ClientError(f"the name server knows no master of a cluster named {cluster_name!r}")
        return pairs

    async def fetch_broker_runtime_stats(self, address: str) -> dict[str, str]:
        """Return a broker's runtime statistics: GET_BROKER_RUNTIME_INFO (28), docs/spec/protocol.md 5.9."""
        command = self._remote.command(RequestCode.GET_BROKER_RUNTIME_INFO)
        return decode_body(await self._remote.ask_broker(address, command), KVTable).table

    async def view_broker_stats_data(self, address: str, stats_name: str, stats_key: str) -> BrokerStatsData:
        """Return one statistic of a broker's last minute, hour and day: VIEW_BROKER_STATS_DATA (315).

        Args:
            stats_name, stats_key: such as ``TOPIC_PUT_NUMS`` and a topic (docs/statistics.md).

        Raises:
            ResponseError: SYSTEM_ERROR (1) if the broker has not counted the key since its start.
        """
        header = ViewBrokerStatsDataRequestHeader(stats_name, stats_key)
        command = self._remote.command(RequestCode.VIEW_BROKER_STATS_DATA, header)
        return decode_body(await self._remote.ask_broker(address, command), BrokerStatsData)

    async def get_broker_config(self, address: str) -> dict[str, str]:
        """Return a broker's present configuration by RocketMQ's keys: GET_BROKER_CONFIG (26)."""
        answer = await self._remote.ask_broker(address, self._remote.command(RequestCode.GET_BROKER_CONFIG))
        text = answer.body.decode("utf-8", "replace") if isinstance(answer.body, bytes) else ""
        return {entry.key: entry.value for entry in parse_properties_file(text)}

    async def update_broker_config(self, address: str, values: Mapping[str, str]) -> None:
        """Change keys of a broker's configuration until it restarts: UPDATE_BROKER_CONFIG (25).

        Raises:
            ResponseError: SYSTEM_ERROR (1) if a key cannot be changed.
        """
        command = self._remote.command(RequestCode.UPDATE_BROKER_CONFIG)
        command.body = format_properties_file(dict(values)).encode()
        await self._remote.ask_broker(address, command)

    async def wipe_write_perm_of_broker(self, namesrv_address: str, broker_name: str) -> int:
        """Remove a broker's write permission at one name server: WIPE_WRITE_PERM_OF_BROKER (205).

        Producers stop sending to the broker when they next ask for a route.

        Returns:
            The number of the broker's topics, 0 for an unknown broker.
        """
        header = WipeWritePermOfBrokerRequestHeader(broker_name=broker_name)
        command = self._remote.command(RequestCode.WIPE_WRITE_PERM_OF_BROKER, header)
        answer = await self._remote.ask_namesrv_at(namesrv_address, command)
        return answer.decode_header(WipeWritePermOfBrokerResponseHeader).wipe_topic_count

    async def add_write_perm_of_broker(self, namesrv_address: str, broker_name: str) -> int:
        """Restore a broker's write permission at one name server: ADD_WRITE_PERM_OF_BROKER (327).

        Returns:
            The number of the broker's topics, 0 for an unknown broker.
        """
        header = AddWritePermOfBrokerRequestHeader(broker_name=broker_name)
        command = self._remote.command(RequestCode.ADD_WRITE_PERM_OF_BROKER, header)
        answer = await self._remote.ask_namesrv_at(namesrv_address, command)
        return answer.decode_header(AddWritePermOfBrokerResponseHeader).add_topic_count

    async def clean_expired_consume_queue(self, address: str) -> None:
        """Remove a broker's ConsumeQueues without messages: CLEAN_EXPIRED_CONSUMEQUEUE (306).

        New messages of such a queue start at offset 0 again.
        """
        await self._remote.ask_broker(address, self._remote.command(RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE))

    async def delete_expired_commit_log(self, address: str) -> None:
        """Delete a broker's files older than ``fileReservedTime`` without waiting for ``deleteWhen``.

        The request is DELETE_EXPIRED_COMMITLOG (329).
        """
        await self._remote.ask_broker(address, self._remote.command(RequestCode.DELETE_EXPIRED_COMMITLOG))

    async def clean_unused_topic(self, address: str) -> None:
        """Remove the ConsumeQueues of topics that a broker no longer has: CLEAN_UNUSED_TOPIC (316)."""
        await self._remote.ask_broker(address, self._remote.command(RequestCode.CLEAN_UNUSED_TOPIC))

    async def broker_producers(self, address: str) -> dict[str, list[ProducerInfo]]:
        """Return the connected producers of a broker, by group: GET_ALL_PRODUCER_INFO (328)."""
        command = self._remote.command(RequestCode.GET_ALL_PRODUCER_INFO)
        return (await self._remote.ask_broker_for(address, command, ProducerTableInfo)).data
