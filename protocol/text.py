"""Java's string hash, which RocketMQ stores on disk and sends in subscriptions."""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Final

# Characters of a text whose hash is remembered. A peer chooses the texts, such as the tags of messages.
MAX_REMEMBERED_LENGTH: Final = 128


def java_hash(text: str) -> int:
    """Return ``String.hashCode``: over UTF-16 code units, ``h = 31 * h + unit`` wrapped to signed 32 bits."""
    return _remembered(text) if len(text) <= MAX_REMEMBERED_LENGTH else _java_hash(text)


def _java_hash(text: str) -> int:
    return to_int32(extend_hash(0, text))


_remembered = lru_cache(maxsize=65_536)(_java_hash)


def extend_hash(value: int, text: str) -> int:
    """Return the unsigned hash of ``prefix + text``, given the unsigned hash of ``prefix`` (0 for "")."""
    if text.isascii():
        units: bytes | tuple[int, ...] = text.encode()
    else:
        encoded = text.encode("utf-16-be", "surrogatepass")
        units = struct.unpack(f">{len(encoded) // 2}H", encoded)
    for unit in units:
        value = (31 * value + unit) & 0xFFFFFFFF
    return value


def to_int32(value: int) -> int:
    """Return Java's ``int`` with the bits of an unsigned 32-bit number."""
    return value - 0x1_0000_0000 if value & 0x8000_0000 else value
