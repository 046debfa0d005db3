"""A name server whose tables are full, and the worst legal frame of each request code that it serves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rewindmq.namesrv.config import NamesrvConfig
from rewindmq.namesrv.handlers import HANDLERS
from rewindmq.namesrv.kv_config import MAX_TABLE_BYTES, ORDER_TOPIC_CONFIG
from rewindmq.namesrv.route_info import (
    MAX_BROKERS_PER_CONNECTION,
    MAX_TOPIC_QUEUES_PER_CONNECTION,
    Registration,
)
from rewindmq.namesrv.server import NameServer
from rewindmq.protocol.body.registration import DataVersion
from rewindmq.protocol.body.route import QueueData
from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.header.namesrv import (
    AddWritePermOfBrokerRequestHeader,
    DeleteKVConfigRequestHeader,
    DeleteTopicFromNamesrvRequestHeader,
    GetKVConfigRequestHeader,
    GetKVListByNamespaceRequestHeader,
    GetRouteInfoRequestHeader,
    GetTopicsByClusterRequestHeader,
    PutKVConfigRequestHeader,
    QueryDataVersionRequestHeader,
    RegisterBrokerRequestHeader,
    UnRegisterBrokerRequestHeader,
    WipeWritePermOfBrokerRequestHeader,
)
from rewindmq.protocol.remoting.connection import Connection
from rewindmq.protocol.remoting.process.collector import tune_collector
from tools.worst_frames.frames import Hall, WorstFrame, names, plain, request
from tools.worst_frames.meter import MeteredWorld
from tools.worst_frames.sizes import Sizes

EVERYWHERE: Final = "EverywhereTopic"
CLUSTER: Final = "MainCluster"
FULL_BROKER: Final = "FullBroker"
FULL_ADDRESS: Final = "10.9.9.9:10911"
_NAME_LENGTH: Final = 60
# Brokers that one connection has registered.
_OF_CONNECTION: Final = 500
# Brokers that each of the other connections has registered, at most.
_OF_OTHERS: Final = MAX_BROKERS_PER_CONNECTION - 1


class NamesrvHall(Hall):
    """A name server with the topics, brokers and pairs that ``Sizes`` names.

    Attributes:
        second: a client whose connection has registered 500 brokers.
    """

    codes = HANDLERS.keys()

    def __init__(self, world: MeteredWorld, sizes: Sizes, root: Path) -> None:
        super().__init__(world, sizes)
        self._kv_file = root / "kvConfig.json"
        self.brokers = names("B", sizes.brokers - 10, _NAME_LENGTH)
        self.topics = names("T", sizes.routed_topics - 10, _NAME_LENGTH)

    def bystander(self) -> RemotingCommand:
        return request(RequestCode.GET_KV_CONFIG, GetKVConfigRequestHeader("small", "small"))

    def connection(self, number: int) -> Connection:
        return list(self._namesrv._server.connections)[number]

    async def open(self) -> None:
        """Write the KV file, start the name server, connect two clients and register the brokers."""
        length = MAX_TABLE_BYTES // self.sizes.pairs - 20
        pairs = {f"key{number:06}": "v" * length for number in range(self.sizes.pairs - 10)}
        table = {ORDER_TOPIC_CONFIG: pairs, "small": {"small": "x"}}
        self._kv_file.write_text(json.dumps({"configTable": table}))
        config = NamesrvConfig(bind_address=self.host, listen_port=9876, kv_config_path=str(self._kv_file))
        self._namesrv = NameServer(self.world.runtime(self.host), config)
        await self.world.spawn(self.host, self._namesrv.start())
        self.address = self._namesrv.address
        self.first, self.second = self.client(), self.client()
        registering = -(-len(self.brokers) // _OF_OTHERS)
        for client in (self.first, self.second, *(self.client() for _ in range(registering))):
            await self.ask(client, self.bystander())
        self._register_brokers()
        tune_collector()

    async def close(self) -> None:
        """Leave everything to the end of the world: to remove all brokers would take long."""

    def _register_brokers(self) -> None:
        of_second = min(_OF_CONNECTION, len(self.brokers) // 2)
        share = len(self.topics) // len(self.brokers)
        for number, name in enumerate(self.brokers):
            own = self.topics[number * share : (number + 1) * share]
            registration = Registration(
                CLUSTER,
                name,
                0,
                f"10.{number >> 8}.{number & 255}.1:10911",
                "",
                DataVersion(1, 1),
                {topic: QueueData(name, 4, 4, 6, 0) for topic in (EVERYWHERE, *own)},
                self.connection(1 if number < of_second else 2 + number // _OF_OTHERS),
            )
            self._namesrv.context.routes.register(registration, self.world.now)


async def _register(hall: NamesrvHall) -> RemotingCommand:
    """A broker that has every topic of the name server."""
    return _registration(hall, counter=1)


async def _register_again(hall: NamesrvHall) -> RemotingCommand:
    """The same broker, after a change of each topic."""
    return _registration(hall, counter=2)


def _registration(hall: NamesrvHall, counter: int) -> RemotingCommand:
    entry = {"perm": 6, "readQueueNums": 4 * counter, "writeQueueNums": 4 * counter}
    budget = hall.sizes.body_bytes // (len(json.dumps(entry)) + 2 * _NAME_LENGTH + 40)
    budget = min(budget, MAX_TOPIC_QUEUES_PER_CONNECTION)
    table = {topic: {**entry, "topicName": topic} for topic in hall.topics[:budget]}
    wrapper = {"topicConfigTable": table, "dataVersion": {"timestamp": 1, "counter": counter}}
    body = json.dumps({"topicConfigSerializeWrapper": wrapper, "filterServerList": []}).encode()
    header = RegisterBrokerRequestHeader(FULL_BROKER, FULL_ADDRESS, CLUSTER, "", 0)
    return request(RequestCode.REGISTER_BROKER, header, body)


async def _query_version(hall: NamesrvHall) -> RemotingCommand:
    header = QueryDataVersionRequestHeader(FULL_BROKER, FULL_ADDRESS, CLUSTER, 0)
    return request(RequestCode.QUERY_DATA_VERSION, header, DataVersion(1, 2))


FRAMES: Final[Sequence[WorstFrame]] = (
    plain(RequestCode.GET_KV_CONFIG, "", lambda _: GetKVConfigRequestHeader(ORDER_TOPIC_CONFIG, "key000001")),
    plain(
        RequestCode.GET_KVLIST_BY_NAMESPACE,
        "10,000 pairs, 4 MiB",
        lambda _: GetKVListByNamespaceRequestHeader(ORDER_TOPIC_CONFIG),
    ),
    plain(
        RequestCode.PUT_KV_CONFIG,
        "10,000 pairs, 4 MiB",
        lambda _: PutKVConfigRequestHeader(ORDER_TOPIC_CONFIG, "key000001", "w"),
    ),
    plain(
        RequestCode.DELETE_KV_CONFIG,
        "10,000 pairs, 4 MiB",
        lambda _: DeleteKVConfigRequestHeader(ORDER_TOPIC_CONFIG, "key000002"),
    ),
    WorstFrame(RequestCode.REGISTER_BROKER, "16 MiB of topics", _register),
    WorstFrame(RequestCode.REGISTER_BROKER, "16 MiB of changed topics", _register_again),
    WorstFrame(RequestCode.QUERY_DATA_VERSION, "", _query_version),
    plain(
        RequestCode.GET_ROUTEINFO_BY_TOPIC, "10,000 brokers", lambda _: GetRouteInfoRequestHeader(EVERYWHERE)
    ),
    plain(RequestCode.GET_BROKER_CLUSTER_INFO, "10,000 brokers"),
    plain(
        RequestCode.WIPE_WRITE_PERM_OF_BROKER,
        "100,000 topics",
        lambda _: WipeWritePermOfBrokerRequestHeader(FULL_BROKER),
    ),
    plain(
        RequestCode.ADD_WRITE_PERM_OF_BROKER,
        "100,000 topics",
        lambda _: AddWritePermOfBrokerRequestHeader(FULL_BROKER),
    ),
    plain(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, "100,000 topics"),
    plain(
        RequestCode.GET_TOPICS_BY_CLUSTER,
        "100,000 topics",
        lambda _: GetTopicsByClusterRequestHeader(CLUSTER),
    ),
    plain(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS, "10,000 brokers"),
    plain(RequestCode.GET_NAMESRV_CONFIG, ""),
    plain(
        RequestCode.UPDATE_NAMESRV_CONFIG,
        "a line of 65,532 backslashes",
        body=lambda _: b"a=" + b"\\" * 65_532,
        codes=frozenset({ResponseCode.SYSTEM_ERROR}),
    ),
    plain(
        RequestCode.UNREGISTER_BROKER,
        "a broker with 16 MiB of topics",
        lambda _: UnRegisterBrokerRequestHeader(FULL_BROKER, FULL_ADDRESS, CLUSTER, 0),
    ),
    plain(
        RequestCode.DELETE_TOPIC_IN_NAMESRV,
        "10,000 brokers",
        lambda _: DeleteTopicFromNamesrvRequestHeader(EVERYWHERE),
    ),
)


async def closed_connection(hall: NamesrvHall) -> None:
    """End the connection that has registered 500 brokers."""
    hall.world.meter.reset(hall.host)
    hall.second.abort()
    await hall.world.sleep(0.1)
