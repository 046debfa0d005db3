"""brokerAddrTable and clusterAddrTable: the addresses of each broker, and the brokers of each cluster.

Every change takes a time that does not depend on the number of brokers; RocketMQ visits all brokers to remove
one address.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from rewindmq.protocol.body.route import BrokerData


class BrokerAddrTable:
    """brokerAddrTable and clusterAddrTable. A broker has at least one address, and a cluster one broker."""

    def __init__(self) -> None:
        self._brokers: dict[str, BrokerData] = {}
        # Ordered sets: the same requests give the same answers.
        self._clusters: dict[str, dict[str, None]] = {}
        self._clusters_of: dict[str, dict[str, None]] = {}
        # Broker name and id of each entry with this address.
        self._ids_at: dict[str, dict[tuple[str, int], None]] = {}
        self._ids = 0
        self._memberships = 0

    @property
    def memberships(self) -> int:
        """The number of pairs of a cluster and one of its brokers."""
        return self._memberships

    @property
    def ids(self) -> int:
        """The number of broker ids of all brokers."""
        return self._ids

    @property
    def clusters(self) -> Collection[str]:
        """The names of all clusters."""
        return self._clusters.keys()

    def __len__(self) -> int:
        return len(self._brokers)

    def __contains__(self, broker_name: object) -> bool:
        return broker_name in self._brokers

    def __iter__(self) -> Iterator[BrokerData]:
        return iter(self._brokers.values())

    def find(self, broker_name: str) -> BrokerData | None:
        """Return a broker, which the caller must not change."""
        return self._brokers.get(broker_name)

    def has_id(self, broker_name: str, broker_id: int) -> bool:
        """Return True if the broker has an address under this id."""
        broker = self._brokers.get(broker_name)
        return broker is not None and broker_id in broker.broker_addrs

    def names_in(self, cluster: str) -> Collection[str]:
        """Return the names of a cluster's brokers; none for an unknown cluster."""
        return self._clusters.get(cluster, {}).keys()

    def put(
        self,
        cluster: str,
        broker_name: str,
        broker_id: int,
        address: str,
        *,
        moves: bool,
        acting_master: bool | None = None,
    ) -> None:
        """Set an id's address.

        Args:
            moves: remove the address from the broker's other ids.
            acting_master: the broker's ``enableActingMaster`` from now on; None if the release has none.
        """
        self._clusters.setdefault(cluster, {})[broker_name] = None
        clusters = self._clusters_of.setdefault(broker_name, {})
        self._memberships += cluster not in clusters
        clusters[cluster] = None
        broker = self._brokers.get(broker_name)
        if broker is None:
            broker = self._brokers[broker_name] = BrokerData(cluster, broker_name, {})
        elif moves:
            for name, other in list(self._ids_at.get(address, ())):
                if name == broker_name and other != broker_id:
                    self._drop(broker, other)
        broker.enable_acting_master = acting_master
        if broker_id in broker.broker_addrs:
            self._forget(broker, broker_id)
        broker.broker_addrs[broker_id] = address
        self._ids_at.setdefault(address, {})[broker_name, broker_id] = None
        self._ids += 1

    def remove_id(self, broker_name: str, broker_id: int) -> list[str]:
        """Remove an id of a broker; return the broker's name if it has no other."""
        broker = self._brokers.get(broker_name)
        if broker is None:
            return []
        if broker_id in broker.broker_addrs:
            self._drop(broker, broker_id)
        return self._remove_if_empty(broker)

    def remove_address(self, address: str) -> list[str]:
        """Remove an address from every broker; return the names of the brokers that have no other."""
        gone = []
        for broker_name, broker_id in list(self._ids_at.get(address, ())):
            broker = self._brokers[broker_name]
            self._drop(broker, broker_id)
            gone += self._remove_if_empty(broker)
        return gone

    def _drop(self, broker: BrokerData, broker_id: int) -> None:
        self._forget(broker, broker_id)
        del broker.broker_addrs[broker_id]

    def _forget(self, broker: BrokerData, broker_id: int) -> None:
        address = broker.broker_addrs[broker_id]
        ids = self._ids_at[address]
        del ids[broker.broker_name, broker_id]
        if not ids:
            del self._ids_at[address]
        self._ids -= 1

    def _remove_if_empty(self, broker: BrokerData) -> list[str]:
        if broker.broker_addrs:
            return []
        name = broker.broker_name
        del self._brokers[name]
        for cluster in self._clusters_of.pop(name):
            names = self._clusters[cluster]
            del names[name]
            self._memberships -= 1
            if not names:
                del self._clusters[cluster]
        return [name]
