"""The five route tables and their operations (RocketMQ ``RouteInfoManager``, docs/spec/nameserver.md A).

Plain data: no clock, no event loop. ``now`` is in protocol seconds. The tables know a broker by the address
that it registered, not by its connection's address.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from rewindmq.namesrv.profile import BROKER_EXPIRY_SECONDS, NamesrvProfile
from rewindmq.protocol.body.cluster import ClusterInfo
from rewindmq.protocol.body.registration import DataVersion
from rewindmq.protocol.body.route import BrokerData, QueueData, TopicRouteData
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError
from rewindmq.protocol.message.sysflag import PERM_READ_WRITE, Perm

MASTER_ID: Final = 0
# RocketMQ has no bounds here; without any, one peer could fill the memory.
MAX_TOPICS: Final = 100_000
MAX_BROKERS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Registration:
    """One decoded and checked REGISTER_BROKER (103) request.

    Attributes:
        queues: topic to its queues at this broker.
        expiry_seconds: the broker's own ``heartbeatTimeoutMillis``, or None.
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
    """The master's addresses, returned to a slave that registers; both are empty for a master."""

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

    def __init__(self, profile: NamesrvProfile) -> None:
        self._profile = profile
        self._topic_queues: dict[str, dict[str, QueueData]] = {}
        self._brokers: dict[str, BrokerData] = {}
        self._clusters: dict[str, set[str]] = {}
        self._live: dict[str, LiveBroker] = {}
        self._filter_servers: dict[str, list[str]] = {}

    def register(self, registration: Registration, now: float) -> RegisterResult | None:
        """Store a broker's registration (docs/spec/nameserver.md A.2, steps 1 to 7).

        The broker's earlier topics keep their routes, even if the body does not list them.

        Returns:
            None if the release refuses the registration; then nothing has changed.

        Raises:
            RequestError: SYSTEM_ERROR (1), a table is full; nothing has changed.
        """
        address = registration.address
        broker = self._brokers.get(registration.broker_name)
        known_ids: dict[int, str] = broker.broker_addrs if broker is not None else {}
        first = registration.broker_id not in known_ids
        if first and self._profile.refuses_single_topic and len(registration.queues) == 1:
            return None
        self._check_room(registration, known_ids)
        self._clusters.setdefault(registration.cluster, set()).add(registration.broker_name)
        if broker is None:
            broker = BrokerData(registration.cluster, registration.broker_name, {})
            self._brokers[registration.broker_name] = broker
        if self._profile.one_id_per_address:
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
        if not (every or self._profile.adds_unknown_topics):
            return
        name = registration.broker_name
        for topic, queue_data in registration.queues.items():
            routes = self._topic_queues.setdefault(topic, {})
            if every or name not in routes:
                routes[name] = queue_data

    def unregister(self, broker_name: str, broker_id: int, address: str) -> None:
        """Remove one id of a broker (UNREGISTER_BROKER, 104), even if another address holds the id by now."""
        self._live.pop(address, None)
        self._filter_servers.pop(address, None)
        broker = self._brokers.get(broker_name)
        if broker is not None:
            broker.broker_addrs.pop(broker_id, None)
            self._drop_if_empty(broker)

    def remove_connection(self, connection: Hashable) -> list[str]:
        """Remove every broker that last registered over ``connection``; return their addresses."""
        gone = [address for address, live in self._live.items() if live.connection is connection]
        for address in gone:
            self._remove_address(address)
        return gone

    def remove_expired(self, now: float) -> list[tuple[str, Hashable]]:
        """Remove brokers whose last registration is too old; return (address, connection) of each."""
        gone = [
            (address, live.connection)
            for address, live in self._live.items()
            if live.last_update + live.expiry_seconds < now
        ]
        for address, _ in gone:
            self._remove_address(address)
        return gone

    def query_data_version(self, address: str, version: DataVersion, now: float) -> DataVersion | None:
        """Return a broker's stored data version, or None; an equal ``version`` refreshes the broker."""
        live = self._live.get(address)
        if live is None:
            return None
        if live.data_version == version:
            self._live[address] = replace(live, last_update=now)
        return live.data_version

    def set_write_permission(self, broker_name: str, writable: bool) -> int:
        """Make a broker's topics readable and writable, or clear their write bit; return how many it has."""
        count = 0
        for queues in self._topic_queues.values():
            queue_data = queues.get(broker_name)
            if queue_data is not None:
                perm = PERM_READ_WRITE if writable else queue_data.perm & ~Perm.WRITE
                # Not changed in place: responses that are still being written hold the old object.
                queues[broker_name] = msgspec.structs.replace(queue_data, perm=perm)
                count += 1
        return count

    def delete_topic(self, topic: str, cluster: str | None = None) -> None:
        """Remove a topic's queues, at the brokers of one cluster or everywhere."""
        queues = self._topic_queues.get(topic)
        if queues is None:
            return
        for broker_name in list(queues) if cluster is None else self._clusters.get(cluster, ()):
            queues.pop(broker_name, None)
        if not queues:
            del self._topic_queues[topic]

    def is_live(self, address: str) -> bool:
        """Return True if a broker is registered at the address."""
        return address in self._live

    def find_route(self, topic: str) -> TopicRouteData | None:
        """Return a topic's route, or None if none of its brokers is registered."""
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
        """Return copies of brokerAddrTable and clusterAddrTable."""
        return ClusterInfo(
            broker_addr_table={name: _copy(broker) for name, broker in self._brokers.items()},
            cluster_addr_table={cluster: set(names) for cluster, names in self._clusters.items()},
        )

    def topics(self) -> list[str]:
        """Return every topic that has queues."""
        return list(self._topic_queues)

    def topics_of_cluster(self, cluster: str) -> list[str]:
        """Return the topics with queues at a broker of the cluster; none for an unknown cluster."""
        names = self._clusters.get(cluster, set())
        return [topic for topic, queues in self._topic_queues.items() if not names.isdisjoint(queues)]

    def system_topics(self) -> tuple[list[str], str]:
        """Return the topics named after clusters and brokers, and the address of one broker or ""."""
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
        if announced is not None and self._profile.announced_expiry:
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
        """Remove a broker that has no address left, with its cluster entry and its queues."""
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
    """Remove a broker name from every cluster; return the clusters that are empty then."""
    empty = []
    for cluster, names in clusters:
        names.discard(name)
        if not names:
            empty.append(cluster)
    return empty


def _copy(broker: BrokerData) -> BrokerData:
    return BrokerData(broker.cluster, broker.broker_name, dict(broker.broker_addrs))
