"""Decides who may read the log at the HA port, and whose reports count as a slave's.

4.9.4 accepts every connection, and every report counts. Changed: see ``Standing``. RocketMQ's HA protocol
names neither the slave nor its broker, so the master compares the connection with what the name servers and
the registered slaves say. A slave of RewindMQ names its connection (``haClientAddress``) in the response to
GET_BROKER_RUNTIME_INFO (28). A slave of RocketMQ does not; its IP address must do.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from enum import Enum
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final, NamedTuple

from rewindmq.broker.config import BrokerConfig
from rewindmq.protocol.body.cluster import ClusterInfo
from rewindmq.protocol.body.kv import KVTable
from rewindmq.protocol.code import RequestCode
from rewindmq.protocol.codec.body import decode_body
from rewindmq.protocol.command import RemotingCommand
from rewindmq.protocol.errors import RewindMQError
from rewindmq.protocol.remoting.address import parse_address
from rewindmq.protocol.remoting.client import RemotingClient

# RocketMQ has no limit; each connection costs a buffer and ten reads of the log a second.
MAX_SLAVES: Final = 64
# Key of a slave's runtime info: the slave's end of its HA connection, ``host:port``; empty without one.
HA_CLIENT_ADDRESS: Final = "haClientAddress"

_MASTER_ID: Final = 0
_TIMEOUT_SECONDS: Final = 3.0


class Standing(Enum):
    """What a connection at the HA port may do.

    Attributes:
        STRANGER: nothing; it is closed.
        READER: reads the log, for it comes from this machine or from the machine of a registered slave.
        SLAVE: reads the log, and a send under SYNC_MASTER waits for its reports.
    """

    STRANGER = "stranger"
    READER = "reader"
    SLAVE = "slave"


class RegisteredSlave(NamedTuple):
    """A slave that the name servers know.

    Attributes:
        address: as registered, ``host:port``.
        ha_client: what the slave says about its HA connection: ``host:port``, empty without a connection or
            without a response; None for a slave of RocketMQ, which does not say it.
    """

    address: str
    ha_client: str | None

    def shares_host(self, address: str) -> bool:
        """Return True if the connection from ``address`` comes from this slave's host."""
        host = _host(self.address)
        return host is not None and host == _host(address)


class HaAccess:
    """The allow-list of the HA port, and the registered slaves of this broker."""

    def __init__(self, config: BrokerConfig, client: RemotingClient) -> None:
        self._broker_name = config.broker_name
        self._networks = config.ha_allowed_networks
        self._namesrv_addresses = config.namesrv_addresses
        self._client = client
        # From the name servers' last answer.
        self._slave_addresses: tuple[str, ...] = ()

    @property
    def asks(self) -> bool:
        """True if the name servers decide which slaves count."""
        return self._networks is None and bool(self._namesrv_addresses)

    def first_standing(self, address: str) -> Standing | None:
        """Return the standing of a new connection, None if only the name servers know it."""
        host = _host(address)
        if host is None:
            return Standing.STRANGER
        if self._networks is not None:
            is_listed = any(host in network for network in self._networks)
            return Standing.SLAVE if is_listed else Standing.STRANGER
        if host.is_loopback:
            return Standing.READER
        return None if self._namesrv_addresses else Standing.STRANGER

    async def find_slaves(self) -> tuple[RegisteredSlave, ...]:
        """Return this broker's registered slaves, at most ``MAX_SLAVES``.

        If no name server answers, or none knows this broker, the last known addresses stay valid: a name
        server that has just started knows no broker yet.
        """
        answers = await asyncio.gather(*map(self._registered_at, self._namesrv_addresses))
        if any(answer is not None for answer in answers):
            known = dict.fromkeys(address for answer in answers for address in answer or ())
            self._slave_addresses = tuple(known)[:MAX_SLAVES]
        return tuple(await asyncio.gather(*map(self._ask, self._slave_addresses)))

    async def _registered_at(self, namesrv: str) -> list[str] | None:
        """Return the addresses of this broker's slaves; None if the name server does not know the broker."""
        try:
            command = RemotingCommand(RequestCode.GET_BROKER_CLUSTER_INFO)
            response = await self._client.invoke(namesrv, command, _TIMEOUT_SECONDS)
            brokers = decode_body(response.require_success(), ClusterInfo).broker_addr_table
        except RewindMQError:
            return None
        broker = brokers.get(self._broker_name)
        if broker is None or _MASTER_ID not in broker.broker_addrs:
            return None
        return [address for number, address in sorted(broker.broker_addrs.items()) if number != _MASTER_ID]

    async def _ask(self, address: str) -> RegisteredSlave:
        try:
            command = RemotingCommand(RequestCode.GET_BROKER_RUNTIME_INFO)
            response = await self._client.invoke(address, command, _TIMEOUT_SECONDS)
            table = decode_body(response.require_success(), KVTable).table
        except RewindMQError:
            return RegisteredSlave(address, "")
        return RegisteredSlave(address, table.get(HA_CLIENT_ADDRESS))


def connections_of(slaves: Sequence[RegisteredSlave], addresses: Sequence[str]) -> set[str]:
    """Return those of the connections' addresses that are the registered slaves'.

    A slave that names no connection has one from its host: of several, the newest.

    Args:
        addresses: of all connections, the oldest first.
    """
    named = {slave.ha_client for slave in slaves}
    found = {address for address in addresses if address in named}
    unnamed = Counter(_host(slave.address) for slave in slaves if slave.ha_client is None)
    for address in reversed(addresses):
        host = _host(address)
        if host is not None and unnamed[host] and address not in found:
            unnamed[host] -= 1
            found.add(address)
    return found


def may_read(address: str, slaves: Sequence[RegisteredSlave]) -> bool:
    """Return True if a connection comes from this machine or from a registered slave's."""
    host = _host(address)
    return host is not None and (host.is_loopback or any(slave.shares_host(address) for slave in slaves))


def _host(address: str) -> IPv4Address | IPv6Address | None:
    """Return the IP address of ``host:port``; None if it has none, such as a host's name."""
    try:
        host = ip_address(parse_address(address)[0])
    except ValueError:
        return None
    return (host.ipv4_mapped or host) if isinstance(host, IPv6Address) else host
