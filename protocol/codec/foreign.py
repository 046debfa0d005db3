"""Recognises peers that speak another protocol by the first four bytes that they send."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

# The first two bytes of a TLS handshake record of version 3.x (docs/spec/protocol.md 8.2).
_TLS_HANDSHAKE: Final = 0x1603
SPEAKS_TLS: Final = (
    "it speaks TLS, which is not served here; switch it off in the client (Java: -Dtls.enable=false)"
)
SPEAKS_GRPC: Final = (
    "it speaks HTTP/2, as the gRPC clients of RocketMQ 5 do, which is not served here; "
    "use a client of the remoting protocol (Java: rocketmq-client, not rocketmq-client-java)"
)
SPEAKS_HTTP: Final = (
    "it is an HTTP client, such as a browser or a health check, and HTTP is not served here; "
    "use a RocketMQ client, or a health check that only opens a TCP connection"
)
ANSWERS_HTTP: Final = "it answers with HTTP, so it is neither a broker nor a name server; check the address"
_BY_FIRST_BYTES: Final = MappingProxyType(
    {
        b"PRI ": SPEAKS_GRPC,
        b"HTTP": ANSWERS_HTTP,
        **dict.fromkeys((b"GET ", b"POST", b"PUT ", b"HEAD", b"OPTI", b"DELE", b"CONN"), SPEAKS_HTTP),
    }
)


def foreign_protocol(first_word: int) -> str | None:
    """Return a sentence about a peer that speaks another protocol, and what to use; None if it is unknown.

    Args:
        first_word: the four bytes where a frame's length is expected. All these bytes would be a length far
            above any limit.
    """
    if first_word >> 16 == _TLS_HANDSHAKE:
        return SPEAKS_TLS
    return _BY_FIRST_BYTES.get(first_word.to_bytes(4, "big"))
