"""Hosts in the format of records: the address, then a 4-byte port (docs/spec/protocol.md 6.1)."""

from __future__ import annotations

import ipaddress
from functools import lru_cache

from rewindmq.protocol.remoting.address import parse_address

_UNKNOWN = b"\x00" * 8


@lru_cache(maxsize=4_096)
def pack_host(address: str) -> bytes:
    """Return 8 bytes for IPv4, 20 for IPv6; zeros if ``address`` is not ``ip:port`` (a closed peer).

    IPv4 addresses mapped into IPv6, and the IPv6 loopback, become IPv4, because old clients read nothing
    else.
    """
    try:
        host, port = parse_address(address)
        ip = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return _UNKNOWN
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is not None:
            ip = ip.ipv4_mapped
        elif ip.is_loopback:
            ip = ipaddress.IPv4Address("127.0.0.1")
    return ip.packed + port.to_bytes(4, "big")
