"""The cluster as the name server sees it, body of 106 (docs/spec/protocol.md 5.2)."""

from __future__ import annotations

from msgspec import field

from rewindmq.protocol.body import RemotingBody
from rewindmq.protocol.body.route import BrokerData


class ClusterInfo(RemotingBody):
    """Brokers by name, and broker names by cluster.

    RocketMQ 4.9.4 and 5.3.3 write bare ids here to every client, so there is no strict form.
    """

    broker_addr_table: dict[str, BrokerData] = field(default_factory=dict)
    cluster_addr_table: dict[str, set[str]] = field(default_factory=dict)
