"""Protected by default: a server listens only on this machine, unless its operator says otherwise."""

from __future__ import annotations

import ipaddress
import socket
from typing import Final

from rewindmq.protocol.errors import ConfigError

_REMEDY: Final = "pass --allow-open-access, or set allowOpenAccess=true,"


def refuse_open_access(host: str, *, allow_open_access: bool, remedy: str = _REMEDY) -> None:
    """Raise if other machines could connect to a server at ``host``, unless that is allowed.

    Args:
        host: the address or name to bind, as the user gave it.
        remedy: what allows it, as an imperative.

    Raises:
        ConfigError: one sentence that says what to do.
    """
    if allow_open_access or is_loopback(host):
        return
    raise ConfigError(
        f"{host!r} is not a loopback address, and without TLS and access control every machine that can"
        f" connect to it may read, send, reset and delete: {remedy} to allow that, or listen on 127.0.0.1"
    )


def is_loopback(host: str) -> bool:
    """Return True if only this machine can connect to ``host``: 127.0.0.0/8, ::1, or a name for only these.

    False for an empty host and 0.0.0.0, which mean all interfaces, and for a name that does not resolve.
    Resolving a name may take seconds.
    """
    if not host:
        return False
    # A server binds only these addresses of a name (``TcpNetwork``).
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        found = socket.getaddrinfo(host, None, family, socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    return all(_is_loopback(str(address[0])) for *_, address in found)


def _is_loopback(text: str) -> bool:
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback
