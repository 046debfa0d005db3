"""The key index file, byte for byte, integers big-endian.

Specification: docs/spec/store.md 5; 4.9.4 IndexFile, IndexHeader.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from rewindmq.protocol.text import extend_hash, to_int32

# beginTimestamp, endTimestamp, beginPhyOffset, endPhyOffset, hashSlotCount, indexCount.
HEADER: Final = struct.Struct(">qqqqii")
HEADER_BYTES: Final = 40
SLOT: Final = struct.Struct(">i")
SLOT_BYTES: Final = 4
# keyHash, phy, timeDiff in seconds, previous entry of the slot.
ENTRY: Final = struct.Struct(">iqii")
ENTRY_BYTES: Final = 20
# Number of the first entry; entry 0 is never used.
FIRST_ENTRY: Final = 1

MAX_HASH_SLOT_NUM: Final = 5_000_000
MAX_INDEX_NUM: Final = 20_000_000
# Most messages that one query returns (MessageStoreConfig.maxMsgsNumBatch).
MAX_MSGS_NUM_BATCH: Final = 64

_INT32_MAX: Final = 0x7FFF_FFFF
_KEY_SEPARATOR: Final = " "


def file_bytes(slots: int, entries: int) -> int:
    """Return the size of an index file in bytes, for its numbers of slots and entries."""
    return HEADER_BYTES + slots * SLOT_BYTES + entries * ENTRY_BYTES


def key_hash(topic: str, key: str) -> int:
    """Return the hash of an entry: never negative, 0 where Java's ``abs`` overflows."""
    value = abs(to_int32(extend_hash(_prefix_hash(topic), key)))
    return value if value <= _INT32_MAX else 0


@lru_cache(maxsize=1_024)
def _prefix_hash(topic: str) -> int:
    return extend_hash(0, f"{topic}#")


def time_diff(store_timestamp: int, begin_timestamp: int) -> int:
    """Return the whole seconds since the file's first entry, clamped to 0 to 2^31 - 1."""
    if begin_timestamp <= 0:
        return 0
    # Java rounds towards zero; negative results become 0 in any case.
    return min(max((store_timestamp - begin_timestamp) // 1000, 0), _INT32_MAX)


def index_keys(unique_key: str | None, keys: str | None) -> Iterator[str]:
    """Yield the keys that a message is indexed under: UNIQ_KEY, then each key in KEYS."""
    if unique_key:
        yield unique_key
    if keys:
        yield from (key for key in keys.split(_KEY_SEPARATOR) if key)
