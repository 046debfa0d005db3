"""The address that brokers register for clients of other machines and containers."""

from __future__ import annotations

import ipaddress
import socket

from rewindmq.cluster.errors import ClusterError


def resolve_advertised(host: str) -> str:
    """Return the IP address of a host: brokers write it into message ids. Resolving may take seconds.

    Raises:
        ClusterError: the name has no IPv4 address, or clients cannot connect to the address.
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        try:
            found = socket.getaddrinfo(host, None, socket.AF_INET, socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise ClusterError(
                f"--advertise {host}: this machine does not know the name; give a name or an IP address that"
                " clients can connect to"
            ) from None
        address = ipaddress.ip_address(found[0][4][0])
    if address.is_unspecified:
        raise ClusterError(f"--advertise {host}: clients cannot connect to {address}")
    return str(address)
