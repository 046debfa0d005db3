"""Java's idea of a string's hash, which RocketMQ stores on disk and sends in subscriptions."""

from __future__ import annotations

import struct
from functools import lru_cache


@lru_cache(maxsize=65_536)
def java_hash(text: str) -> int:
    """``String.hashCode``: over UTF-16 code units, ``h = 31 * h + unit`` wrapped to signed 32 bits."""
    return to_int32(extend_hash(0, text))


def extend_hash(value: int, text: str) -> int:
    """Unsigned hash of some text followed by ``text``; ``value`` is that of the former, 0 for none."""
    if text.isascii():
        units: bytes | tuple[int, ...] = text.encode()
    else:
        encoded = text.encode("utf-16-be", "surrogatepass")
        units = struct.unpack(f">{len(encoded) // 2}H", encoded)
    for unit in units:
        value = (31 * value + unit) & 0xFFFFFFFF
    return value


def to_int32(value: int) -> int:
    """An unsigned 32-bit number as Java's ``int`` of the same bits."""
    return value - 0x1_0000_0000 if value & 0x8000_0000 else value
