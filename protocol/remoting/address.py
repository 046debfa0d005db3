"""``host:port`` texts, the form of every address in the protocol (docs/spec/protocol.md 7.6)."""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import Any, Final

_UNKNOWN_HOST: Final = b"\x00" * 8


def format_address(endpoint: Any) -> str:
    """Return the text of a socket address from the transport; "unknown" if the socket is closed."""
    if not endpoint:
        return "unknown"
    host, port = endpoint[0], endpoint[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_address(text: str) -> tuple[str, int]:
    """Split ``host:port``; IPv6 hosts with or without brackets.

    Raises:
        ValueError: no port, or a port outside 1..65535.
    """
    host, colon, digits = text.strip().rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not colon or not host or not (digits.isascii() and digits.isdigit()) or not 1 <= int(digits) <= 65535:
        raise ValueError(f"{text!r} is not of the form host:port")
    return host, int(digits)


@lru_cache(maxsize=4_096)
def pack_host(address: str) -> bytes:
    """Return the address, then a 4-byte port, as records have hosts (docs/spec/protocol.md 6.1).

    These are 8 bytes for IPv4, 20 for IPv6, and zeros if ``address`` is not ``ip:port`` (a closed peer). IPv4
    addresses mapped into IPv6, and the IPv6 loopback, become IPv4, because old clients read nothing else.
    """
    try:
        host, port = parse_address(address)
        ip = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return _UNKNOWN_HOST
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is not None:
            ip = ip.ipv4_mapped
        elif ip.is_loopback:
            ip = ipaddress.IPv4Address("127.0.0.1")
    return ip.packed + port.to_bytes(4, "big")
