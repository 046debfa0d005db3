"""``host:port`` texts, the form of every address in the protocol (docs/spec/protocol.md 7.6)."""

from __future__ import annotations

from typing import Any


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
