"""Java's idea of a string's hash, which RocketMQ stores on disk and sends in subscriptions."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=65_536)
def java_hash(text: str) -> int:
    """``String.hashCode``: over UTF-16 code units, ``h = 31 * h + unit`` wrapped to signed 32 bits."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for index in range(0, len(units), 2):
        value = (31 * value + (units[index] << 8 | units[index + 1])) & 0xFFFFFFFF
    return value - 0x1_0000_0000 if value & 0x8000_0000 else value
