"""Requests to a name server, as a broker's or a client's connection makes them."""

from __future__ import annotations

import zlib

from rewindmq.protocol.body.cluster import ClusterInfo
from rewindmq.protocol.body.registration import (
    DataVersion,
    RegisterBrokerBody,
    TopicConfig,
    TopicConfigSerializeWrapper,
)
from rewindmq.protocol.body.route import TopicRouteData
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.codec.body import decode_body, encode_body
from rewindmq.protocol.command import RemotingCommand, SerializeType
from rewindmq.protocol.header.namesrv import GetRouteInfoRequestHeader, RegisterBrokerRequestHeader
from tests.support.asking import Asking


class NamesrvRequests(Asking):
    """What a ``Peer`` asks a name server for."""

    async def register(
        self,
        address: str = "10.0.0.2:10911",
        *,
        name: str = "broker-a",
        broker_id: int = 0,
        cluster: str = "DefaultCluster",
        topics: tuple[str, ...] = ("T", "TBW102"),
        version: tuple[int, int] = (1, 1),
        queues: int = 4,
        crc: int | None = None,
        ha_address: str = "",
        expiry_ms: int | None = None,
        configs: tuple[TopicConfig, ...] = (),
    ) -> RemotingCommand:
        table = {
            topic: TopicConfig(topic_name=topic, read_queue_nums=queues, write_queue_nums=queues)
            for topic in topics
        }
        table.update((config.topic_name, config) for config in configs)
        wrapper = TopicConfigSerializeWrapper(
            topic_config_table=table, data_version=DataVersion(timestamp=version[0], counter=version[1])
        )
        body = encode_body(RegisterBrokerBody(topic_config_serialize_wrapper=wrapper), SerializeType.MSGPACK)
        header = RegisterBrokerRequestHeader(
            broker_name=name,
            broker_addr=address,
            cluster_name=cluster,
            ha_server_addr=ha_address,
            broker_id=broker_id,
            body_crc32=zlib.crc32(body) & 0x7FFFFFFF if crc is None else crc,
            heartbeat_timeout_millis=expiry_ms,
        )
        return await self.ask(RequestCode.REGISTER_BROKER, header, body)

    async def find_route(self, topic: str = "T") -> RemotingCommand:
        return await self.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequestHeader(topic=topic))

    async def route(self, topic: str = "T") -> TopicRouteData:
        return decode_body((await self.find_route(topic)).require_success(), TopicRouteData)

    async def cluster_info(self) -> ClusterInfo:
        answer = await self.ask(RequestCode.GET_BROKER_CLUSTER_INFO)
        return decode_body(answer.require_success(), ClusterInfo)
