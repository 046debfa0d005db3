"""The five route tables and their operations (RocketMQ ``RouteInfoManager``, docs/spec/nameserver.md A).

Plain data: no clock, no event loop. ``now`` is in protocol seconds. The tables know a broker by the address
that it registered, not by its connection's address.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace as replace_struct

from rewindmq.namesrv.broker_addr_table import BrokerAddrTable
from rewindmq.namesrv.profile import BROKER_EXPIRY_SECONDS, NamesrvProfile
from rewindmq.namesrv.topic_queue_table import Additions, TopicPart, TopicQueueTable
from rewindmq.protocol.body.cluster import ClusterInfo
from rewindmq.protocol.body.registration import DataVersion
from rewindmq.protocol.body.route import BrokerData, QueueData, TopicRouteData
from rewindmq.protocol.code import ResponseCode
from rewindmq.protocol.errors import RequestError

MASTER_ID: Final = 0
# RocketMQ has no bounds here; without any, one peer could fill the memory. Brokers add topics of their own to
# 100,000 of applications.
MAX_TOPICS: Final = 120_000
# Also the limit of clusters, of broker ids and of broker addresses.
MAX_BROKERS: Final = 10_000
# Topics x brokers: 100 brokers with 100,000 topics each.
MAX_TOPIC_QUEUES: Final = 12_000_000
# One connection's part of the brokers' addresses, and of the pairs of a topic and a broker. A broker has a
# connection of its own; a container of brokers has one for all of them.
MAX_BROKERS_PER_CONNECTION: Final = 1_000
MAX_TOPIC_QUEUES_PER_CONNECTION: Final = 120_000
# Queues of removed brokers that are freed at once: about 1 ms.
SWEEP_SLICE: Final = 2_000

_NO_QUEUES: Final[Mapping[str, QueueData]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Registration:
    """One decoded and checked REGISTER_BROKER (103) request.

    Attributes:
        queues: topic to its queues at this broker.
        expiry_seconds: the broker's own ``heartbeatTimeoutMillis``, or None.
        acting_master: the broker's ``enableActingMaster``.
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
    acting_master: bool = False


@dataclass(frozen=True, slots=True)
class RegisterResult:
    """The master's addresses, returned to a slave that registers; both are empty for a master."""

    master_address: str = ""
    ha_address: str = ""


@dataclass(frozen=True, slots=True)
class LiveBroker:
    """An entry of brokerLiveTable."""

    broker_name: str
    last_update: float
    data_version: DataVersion
    connection: Hashable
    ha_address: str
    expiry_seconds: float


class RouteInfoManager:
    """topicQueueTable, brokerAddrTable, clusterAddrTable, brokerLiveTable, filterServerTable.

    Attributes:
        on_leaving: called after brokers were removed, if ``sweep`` has queues left to free.
    """

    def __init__(self, profile: NamesrvProfile) -> None:
        self._profile = profile
        self._topic_queues = TopicQueueTable()
        self._brokers = BrokerAddrTable()
        self._live: dict[str, LiveBroker] = {}
        # The addresses that last registered over each connection.
        self._carried: dict[Hashable, dict[str, None]] = {}
        self._filter_servers: dict[str, list[str]] = {}
        self.on_leaving: Callable[[], None] = _do_nothing

    def stage(self, registration: Registration) -> Generator[None, None, TopicPart | None]:
        """Prepare a registration with many new topics, so that ``register`` takes a short time.

        Yields after about 1 ms of work. No other registration may take effect between the first slice and
        ``register``; closing the generator removes what it has prepared.

        Returns:
            The topics for ``register``, which are in no route yet; None if few are new.

        Raises:
            RequestError: SYSTEM_ERROR (1), a table is full; nothing has changed.
        """
        queues = self._brought(registration)
        additions = self._topic_queues.additions(registration.broker_name, queues)
        if len(queues) > SWEEP_SLICE:
            yield
        if len(additions.unknown) <= SWEEP_SLICE:
            return None
        self._check_room(registration, additions)
        try:
            return (yield from self._topic_queues.add_part(queues, additions.unknown))
        except GeneratorExit:
            self._begin_sweep()
            raise

    def register(
        self, registration: Registration, now: float, staged: TopicPart | None = None
    ) -> RegisterResult | None:
        """Store a broker's registration (docs/spec/nameserver.md A.2, steps 1 to 7).

        The broker's earlier topics keep their routes, even if the body does not list them.

        Args:
            staged: what ``stage`` has returned for this registration.

        Returns:
            None if the release refuses the registration; then nothing has changed.

        Raises:
            RequestError: SYSTEM_ERROR (1), a table is full; nothing has changed.
        """
        try:
            is_accepted = self._bring_queues(registration, staged)
        except RequestError:
            self._drop(staged)
            raise
        if not is_accepted:
            self._drop(staged)
            return None
        name, broker_id, address = registration.broker_name, registration.broker_id, registration.address
        self._brokers.put(
            registration.cluster,
            name,
            broker_id,
            address,
            moves=self._profile.one_id_per_address,
            acting_master=registration.acting_master if self._profile.shows_acting_master else None,
        )
        self._set_live(
            address,
            LiveBroker(
                name,
                now,
                registration.data_version,
                registration.connection,
                registration.ha_address,
                self._expiry(registration.expiry_seconds),
            ),
        )
        if registration.filter_servers:
            self._filter_servers[address] = list(registration.filter_servers)
        else:
            self._filter_servers.pop(address, None)
        return self._master_of(name, broker_id)

    def shared_name(self, topic: str) -> str:
        """Return the same name, if possible as the object that the tables have; safe to call in a thread."""
        return self._topic_queues.shared_name(topic)

    def unregister(self, broker_name: str, broker_id: int, address: str) -> None:
        """Remove one id of a broker (UNREGISTER_BROKER, 104), even if another address holds the id by now."""
        self._drop_live(address)
        self._remove_queues(self._brokers.remove_id(broker_name, broker_id))
        self._begin_sweep()

    def remove_connection(self, connection: Hashable) -> list[str]:
        """Remove every broker that last registered over ``connection``; return their addresses."""
        gone = list(self._carried.get(connection, ()))
        for address in gone:
            self._remove_address(address)
        self._begin_sweep()
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
        self._begin_sweep()
        return gone

    @property
    def topics_in_memory(self) -> int:
        """The number of topics. It includes topics that ``sweep`` will delete."""
        return len(self._topic_queues)

    @property
    def broker_ids(self) -> int:
        """The number of broker ids of all brokers."""
        return self._brokers.ids

    @property
    def queues_in_memory(self) -> int:
        """The number of pairs of a topic and a broker. It includes pairs that ``sweep`` will delete."""
        return self._topic_queues.entries

    def sweep(self) -> bool:
        """Free some of the queues of removed brokers, which are in no route any more.

        Returns:
            True if none is left.
        """
        return self._topic_queues.sweep(SWEEP_SLICE)

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
        return self._topic_queues.set_write_permission(broker_name, writable)

    def delete_topic(self, topic: str, cluster: str | None = None) -> None:
        """Remove a topic's queues, at the brokers of one cluster or everywhere."""
        self._topic_queues.delete_topic(topic, None if cluster is None else self._brokers.names_in(cluster))

    def is_live(self, address: str) -> bool:
        """Return True if a broker is registered at the address."""
        return address in self._live

    def find_route(self, topic: str) -> TopicRouteData | None:
        """Return a topic's route, or None if none of its brokers is registered.

        The caller must not change it, nor keep it until brokers register: see ``copied``.
        """
        queues = self._topic_queues.find(topic)
        brokers = [broker for queue in queues if (broker := self._brokers.find(queue.broker_name))]
        if not brokers:
            return None
        filters = {
            address: self._filter_servers[address]
            for broker in brokers
            for address in broker.broker_addrs.values()
            if address in self._filter_servers
        }
        return TopicRouteData(queue_datas=queues, broker_datas=brokers, filter_server_table=filters)

    def cluster_info(self) -> ClusterInfo:
        """Return copies of brokerAddrTable and clusterAddrTable."""
        return ClusterInfo(
            broker_addr_table={broker.broker_name: _copy(broker) for broker in self._brokers},
            cluster_addr_table={name: set(self._brokers.names_in(name)) for name in self._brokers.clusters},
        )

    def topics(self) -> list[str]:
        """Return every topic that has queues."""
        return self._topic_queues.topics()

    def topics_of_cluster(self, cluster: str) -> Generator[None, None, list[str]]:
        """Yield after about 1 ms of work; return the topics with queues at a broker of the cluster.

        There are none for an unknown cluster.
        """
        return self._topic_queues.topics_of(list(self._brokers.names_in(cluster)))

    def system_topics(self) -> tuple[list[str], str]:
        """Return the topics named after clusters and brokers, and the address of one broker or ""."""
        names = dict.fromkeys([*self._brokers.clusters, *(broker.broker_name for broker in self._brokers)])
        addresses = (address for broker in self._brokers for address in broker.broker_addrs.values())
        return list(names), next(addresses, "")

    def _bring_queues(self, registration: Registration, staged: TopicPart | None) -> bool:
        """Store the queues; return False if the release refuses the registration."""
        is_single = len(registration.queues) == 1
        if is_single and self._profile.refuses_single_topic and self._is_first(registration):
            return False
        queues = self._brought(registration)
        if staged is not None:
            queues = {topic: queue for topic, queue in queues.items() if topic not in staged.queues}
        additions = self._topic_queues.additions(registration.broker_name, queues)
        self._check_room(registration, additions)
        if staged is not None:
            self._topic_queues.show(registration.broker_name, staged)
        every = self._is_new(registration)
        self._topic_queues.put(registration.broker_name, queues, additions, every=every)
        return True

    def _drop(self, staged: TopicPart | None) -> None:
        if staged is not None:
            self._topic_queues.drop(staged)
            self._begin_sweep()

    def _is_first(self, registration: Registration) -> bool:
        """Return True if the broker has no address under this id."""
        return not self._brokers.has_id(registration.broker_name, registration.broker_id)

    def _is_new(self, registration: Registration) -> bool:
        """Return True if the registration replaces the broker's queues."""
        live = self._live.get(registration.address)
        changed = live is None or live.data_version != registration.data_version
        return changed or self._is_first(registration)

    def _brought(self, registration: Registration) -> Mapping[str, QueueData]:
        """Return the queues that the registration adds or replaces."""
        is_master = registration.broker_id == MASTER_ID
        if is_master and (self._profile.adds_unknown_topics or self._is_new(registration)):
            return registration.queues
        return _NO_QUEUES

    def _check_room(self, registration: Registration, additions: Additions) -> None:
        name = registration.broker_name
        brokers, queues = self._brokers, self._topic_queues
        carried = self._carried.get(registration.connection, {})
        carried_names = {self._live[address].broker_name for address in carried} | {name}
        new_pairs = len(additions.unknown)
        tables = (
            (
                "brokers of this connection",
                len(carried),
                registration.address not in carried,
                MAX_BROKERS_PER_CONNECTION,
            ),
            (
                "pairs of a topic and a broker of this connection",
                sum(map(queues.count_of, carried_names)),
                new_pairs,
                MAX_TOPIC_QUEUES_PER_CONNECTION,
            ),
            ("topics", len(queues), additions.new_topics, MAX_TOPICS),
            ("clusters", len(brokers.clusters), registration.cluster not in brokers.clusters, MAX_BROKERS),
            ("brokers", len(brokers), name not in brokers, MAX_BROKERS),
            (
                "brokers of clusters",
                brokers.memberships,
                name not in brokers.names_in(registration.cluster),
                MAX_BROKERS,
            ),
            ("broker ids", brokers.ids, not brokers.has_id(name, registration.broker_id), MAX_BROKERS),
            ("broker addresses", len(self._live), registration.address not in self._live, MAX_BROKERS),
            (
                "pairs of a topic and a broker",
                queues.entries,
                new_pairs,
                MAX_TOPIC_QUEUES,
            ),
        )
        for what, count, new, limit in tables:
            if new and count + new > limit:
                raise RequestError(ResponseCode.SYSTEM_ERROR, f"there are {count} {what} already")

    def _expiry(self, announced: float | None) -> float:
        if announced is not None and self._profile.announced_expiry:
            return announced
        return BROKER_EXPIRY_SECONDS

    def _master_of(self, broker_name: str, broker_id: int) -> RegisterResult:
        broker = self._brokers.find(broker_name)
        if broker_id == MASTER_ID or broker is None:
            return RegisterResult()
        master = broker.broker_addrs.get(MASTER_ID, "")
        live = self._live.get(master)
        return RegisterResult(master, live.ha_address) if live is not None else RegisterResult()

    def _set_live(self, address: str, live: LiveBroker) -> None:
        self._forget_carrier(address)
        self._live[address] = live
        self._carried.setdefault(live.connection, {})[address] = None

    def _drop_live(self, address: str) -> None:
        self._forget_carrier(address)
        self._live.pop(address, None)
        self._filter_servers.pop(address, None)

    def _forget_carrier(self, address: str) -> None:
        live = self._live.get(address)
        if live is None:
            return
        carried = self._carried[live.connection]
        del carried[address]
        if not carried:
            del self._carried[live.connection]

    def _remove_address(self, address: str) -> None:
        self._drop_live(address)
        self._remove_queues(self._brokers.remove_address(address))

    def _remove_queues(self, broker_names: Iterable[str]) -> None:
        for name in broker_names:
            self._topic_queues.remove_broker(name)

    def _begin_sweep(self) -> None:
        if not self.sweep():
            self.on_leaving()


def copied(route: TopicRouteData) -> TopicRouteData:
    """Return a route that keeps its brokers' addresses when these register others."""
    return replace_struct(route, broker_datas=[_copy(broker) for broker in route.broker_datas])


def _copy(broker: BrokerData) -> BrokerData:
    return BrokerData(
        broker.cluster, broker.broker_name, dict(broker.broker_addrs), broker.enable_acting_master
    )


def _do_nothing() -> None:
    """Default ``on_leaving``, until the name server sets it."""
