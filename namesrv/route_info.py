"""The five route tables and every change to them (RocketMQ ``RouteInfoManager``, docs/spec/nameserver.md A).

Plain data: no clock, no event loop. ``now`` is in protocol seconds. Brokers are known by what they
registered, never by where their connection comes from.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from rewindmq.namesrv.rules import BROKER_EXPIRY_SECONDS, NamesrvRules
from rewindmq.protocol.body.cluster import ClusterInfo
from rewindmq.protocol.body.registration import DataVersion
from rewindmq.protocol.body.route import BrokerData, QueueData, TopicRouteData
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.sysflag import PERM_READ_WRITE, Perm

MASTER_ID: Final = 0
# RocketMQ has no bounds here; without any, one peer could fill the memory.
MAX_TOPICS: Final = 100_000
MAX_BROKERS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Registration:
    """One 103, decoded and checked.

    Attributes:
        queues: topic to its queues at this broker.
        expiry_seconds: what the broker announced, or None.
    """

    cluster: str
    broker_name: str
    broker_id: int
    address: str
    ha_address: str
    data_version: DataVersion
    queues: Mapping[str, QueueData]
    connection: Hashable
    filter_servers: Sequence[str] = ()
    expiry_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class RegisterResult:
    """What a slave learns from its registration; both empty for a master."""

    master_address: str = ""
    ha_address: str = ""


@dataclass(frozen=True, slots=True)
class LiveBroker:
    """An entry of brokerLiveTable."""

    last_update: float
    data_version: DataVersion
    connection: Hashable
    ha_address: str
    expiry_seconds: float


class RouteInfoManager:
    """topicQueueTable, brokerAddrTable, clusterAddrTable, brokerLiveTable, filterServerTable."""

    def __init__(self, rules: NamesrvRules) -> None:
        self._rules = rules
        self._topic_queues: dict[str, dict[str, QueueData]] = {}
        self._brokers: dict[str, BrokerData] = {}
        self._clusters: dict[str, set[str]] = {}
        self._live: dict[str, LiveBroker] = {}
        self._filter_servers: dict[str, list[str]] = {}

    def register(self, registration: Registration, now: float) -> RegisterResult | None:
        """Take over what a broker says about itself (docs/spec/nameserver.md A.2, steps 1 to 7).

        Topics that the body does not name keep their routes.

        Returns:
            None when the release refuses the registration; nothing has changed then.

        Raises:
            RequestError: code 1, a table is full; nothing has changed.
        """
        address = registration.address
        broker = self._brokers.get(registration.broker_name)
        known_ids: dict[int, str] = broker.broker_addrs if broker is not None else {}
        first = registration.broker_id not in known_ids
        if first and self._rules.refuses_single_topic and len(registration.queues) == 1:
            return None
        self._check_room(registration, known_ids)
        self._clusters.setdefault(registration.cluster, set()).add(registration.broker_name)
        if broker is None:
            broker = BrokerData(registration.cluster, registration.broker_name, {})
            self._brokers[registration.broker_name] = broker
        if self._rules.one_id_per_address:
            _drop_address(broker, address, keep=registration.broker_id)
        broker.broker_addrs[registration.broker_id] = address

        live = self._live.get(address)
        changed = live is None or live.data_version != registration.data_version
        if registration.broker_id == MASTER_ID:
            self._take_topics(registration, every=changed or first)
        self._live[address] = LiveBroker(
            now,
            registration.data_version,
            registration.connection,
            registration.ha_address,
            self._expiry(registration.expiry_seconds),
        )
        if registration.filter_servers:
            self._filter_servers[address] = list(registration.filter_servers)
        else:
            self._filter_servers.pop(address, None)
        return self._master_of(broker, registration.broker_id)

    def _take_topics(self, registration: Registration, *, every: bool) -> None:
        if not (every or self._rules.adds_unknown_topics):
            return
        name = registration.broker_name
        for topic, queue_data in registration.queues.items():
            routes = self._topic_queues.setdefault(topic, {})
            if every or name not in routes:
                routes[name] = queue_data

    def unregister(self, broker_name: str, broker_id: int, address: str) -> None:
        """Forget one id of a broker (104); the id goes even when another address holds it by now."""
        self._live.pop(address, None)
        self._filter_servers.pop(address, None)
        broker = self._brokers.get(broker_name)
        if broker is not None:
            broker.broker_addrs.pop(broker_id, None)
            self._drop_if_empty(broker)

    def remove_connection(self, connection: Hashable) -> list[str]:
        """Forget every broker that last registered over ``connection``; returns their addresses."""
        gone = [address for address, live in self._live.items() if live.connection is connection]
        for address in gone:
            self._remove_address(address)
        return gone

    def remove_expired(self, now: float) -> list[tuple[str, Hashable]]:
        """Forget brokers whose last registration is too old; returns (address, connection) of each."""
        gone = [
            (address, live.connection)
            for address, live in self._live.items()
            if live.last_update + live.expiry_seconds < now
        ]
        for address, _ in gone:
            self._remove_address(address)
        return gone

    def query_data_version(self, address: str, version: DataVersion, now: float) -> DataVersion | None:
        """The version held for a broker (322), or None; an equal one counts as a sign of life."""
        live = self._live.get(address)
        if live is None:
            return None
        if live.data_version == version:
            self._live[address] = replace(live, last_update=now)
        return live.data_version

    def set_write_permission(self, broker_name: str, writable: bool) -> int:
        """Flip the write bit of a broker's topics (205, 327); returns how many topics it has."""
        count = 0
        for queues in self._topic_queues.values():
            queue_data = queues.get(broker_name)
            if queue_data is not None:
                perm = PERM_READ_WRITE if writable else queue_data.perm & ~Perm.WRITE
                # Not changed in place: answers that have not left yet hold the old one.
                queues[broker_name] = msgspec.structs.replace(queue_data, perm=perm)
                count += 1
        return count

    def delete_topic(self, topic: str, cluster: str | None = None) -> None:
        """Forget a topic's queues, at the brokers of one cluster or everywhere (216)."""
        queues = self._topic_queues.get(topic)
        if queues is None:
            return
        for broker_name in list(queues) if cluster is None else self._clusters.get(cluster, ()):
            queues.pop(broker_name, None)
        if not queues:
            del self._topic_queues[topic]

    def is_live(self, address: str) -> bool:
        """Whether a broker is registered at the address."""
        return address in self._live

    def find_route(self, topic: str) -> TopicRouteData | None:
        """Where a topic's queues are (105), or None unless at least one of its brokers is known."""
        queues = self._topic_queues.get(topic)
        if queues is None:
            return None
        brokers = [_copy(self._brokers[name]) for name in queues if name in self._brokers]
        if not brokers:
            return None
        filters = {
            address: self._filter_servers[address]
            for broker in brokers
            for address in broker.broker_addrs.values()
            if address in self._filter_servers
        }
        return TopicRouteData(
            queue_datas=list(queues.values()), broker_datas=brokers, filter_server_table=filters
        )

    def cluster_info(self) -> ClusterInfo:
        """brokerAddrTable and clusterAddrTable as they are (106)."""
        return ClusterInfo(
            broker_addr_table={name: _copy(broker) for name, broker in self._brokers.items()},
            cluster_addr_table={cluster: set(names) for cluster, names in self._clusters.items()},
        )

    def topics(self) -> list[str]:
        """Every topic with a queue anywhere (206)."""
        return list(self._topic_queues)

    def topics_of_cluster(self, cluster: str) -> list[str]:
        """Topics with a queue at a broker of the cluster (224); none for an unknown cluster."""
        names = self._clusters.get(cluster, set())
        return [topic for topic, queues in self._topic_queues.items() if not names.isdisjoint(queues)]

    def system_topics(self) -> tuple[list[str], str]:
        """The topics named after clusters and brokers, and the address of some broker or "" (304)."""
        names = dict.fromkeys([*self._clusters, *self._brokers])
        addresses = (address for broker in self._brokers.values() for address in broker.broker_addrs.values())
        return list(names), next(addresses, "")

    def _check_room(self, registration: Registration, known_ids: Mapping[int, str]) -> None:
        tables: tuple[tuple[str, Collection[Hashable], Iterable[Hashable], int], ...] = (
            ("topics", self._topic_queues, registration.queues, MAX_TOPICS),
            ("clusters", self._clusters, (registration.cluster,), MAX_BROKERS),
            ("brokers", self._brokers, (registration.broker_name,), MAX_BROKERS),
            ("broker ids", known_ids, (registration.broker_id,), MAX_BROKERS),
            ("broker addresses", self._live, (registration.address,), MAX_BROKERS),
        )
        for what, table, keys, limit in tables:
            new = sum(key not in table for key in keys)
            if new and len(table) + new > limit:
                raise RequestError(ResponseCode.SYSTEM_ERROR, f"there are {len(table)} {what} already")

    def _expiry(self, announced: float | None) -> float:
        if announced is not None and self._rules.announced_expiry:
            return announced
        return BROKER_EXPIRY_SECONDS

    def _master_of(self, broker: BrokerData, broker_id: int) -> RegisterResult:
        if broker_id == MASTER_ID:
            return RegisterResult()
        master = broker.broker_addrs.get(MASTER_ID, "")
        live = self._live.get(master)
        return RegisterResult(master, live.ha_address) if live is not None else RegisterResult()

    def _remove_address(self, address: str) -> None:
        self._live.pop(address, None)
        self._filter_servers.pop(address, None)
        for broker in list(self._brokers.values()):
            if _drop_address(broker, address):
                self._drop_if_empty(broker)

    def _drop_if_empty(self, broker: BrokerData) -> None:
        """A broker name without any address takes its cluster entry and its queues with it."""
        if broker.broker_addrs:
            return
        name = broker.broker_name
        del self._brokers[name]
        for cluster in _discard(self._clusters.items(), name):
            del self._clusters[cluster]
        for topic, queues in list(self._topic_queues.items()):
            queues.pop(name, None)
            if not queues:
                del self._topic_queues[topic]


def _drop_address(broker: BrokerData, address: str, keep: int | None = None) -> bool:
    stale = [
        broker_id
        for broker_id, known in broker.broker_addrs.items()
        if known == address and broker_id != keep
    ]
    for broker_id in stale:
        del broker.broker_addrs[broker_id]
    return bool(stale)


def _discard(clusters: Iterable[tuple[str, set[str]]], name: str) -> list[str]:
    """Take a broker name out of every cluster; returns the clusters that are empty now."""
    empty = []
    for cluster, names in clusters:
        names.discard(name)
        if not names:
            empty.append(cluster)
    return empty


def _copy(broker: BrokerData) -> BrokerData:
    return BrokerData(broker.cluster, broker.broker_name, dict(broker.broker_addrs))
