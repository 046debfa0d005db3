"""The broker's ends of the network."""

from __future__ import annotations

from dataclasses import dataclass

from rewindmq.broker.ha.master import HaMaster
from rewindmq.protocol.remoting.accept.limit import ConnectionLimit
from rewindmq.protocol.remoting.client import RemotingClient
from rewindmq.protocol.remoting.traffic.held_bytes import Traffic


@dataclass(frozen=True, slots=True)
class Endpoints:
    """What is open before the store is: the bound ports, and the client of the name servers.

    Attributes:
        address: ``host:port`` as registered and written into message ids.
        connections: counts and limits the accepted connections.
        traffic: the limits for all accepted connections.
        ha_master: the slaves' server; at a master its port is bound already.
    """

    address: str
    connections: ConnectionLimit
    traffic: Traffic
    client: RemotingClient
    ha_master: HaMaster

    @property
    def host(self) -> str:
        """The registered host."""
        return self.address.rpartition(":")[0]
