"""The cluster as the name server sees it, body of 106 (``wire.md`` 5.2)."""

from __future__ import annotations

from typing import ClassVar

from msgspec import field

from rewindmq.protocol.body import RemotingBody
from rewindmq.protocol.body.route import BrokerData


class ClusterInfo(RemotingBody):
    """Brokers by name, and broker names by cluster."""

    broker_addr_table: dict[str, BrokerData] = field(default_factory=dict)
    cluster_addr_table: dict[str, set[str]] = field(default_factory=dict)

    # RocketMQ writes bare ids here unless the request says acceptStandardJsonOnly.
    may_be_standard_json: ClassVar[bool] = True
